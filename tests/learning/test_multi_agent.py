"""Two trainers over one environment: both policies improve, and every counter adds up; self-play beats what it was at the start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollstream.algorithms import make_agent
from rollstream.config import ExperimentSpec
from rollstream.envs.multi_agent import ParallelEnvironments
from rollstream.envs.multi_agent.toy import Pursuit
from rollstream.metrics import env_steps_in_flight
from rollstream.seeding import child_generator
from rollstream_cli.inline import run

pytestmark = [pytest.mark.learning, pytest.mark.timeout(1_200)]

TOYS = "rollstream.envs.multi_agent.toy"


def trained(
    algorithm: str, game: str, *, steps: int, runs_dir: Path, **settings: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Summary and reports of an inline run."""
    told: list[dict[str, Any]] = []
    spec = ExperimentSpec.model_validate(
        {
            "algorithm": algorithm,
            "environment": {"id": f"{TOYS}:{game}"},
            "settings": settings,
            "stop": {"env_steps": steps},
            "evaluation_episodes": 0,
        }
    )
    summary = run(spec, runs_dir=runs_dir, report=lambda report: told.append(dict(report)), allow=(TOYS,))
    return summary, told


def test_both_trainers_improve_and_their_counters_add_up(tmp_path: Path) -> None:
    summary, told = trained("two-trainer", "Meeting", steps=40_000, runs_dir=tmp_path, ppo={"rollout_steps": 64})
    first = next(report["metrics"] for report in told if {"ppo.mean_return", "dqn.mean_return"} <= set(report["metrics"]))
    last = told[-1]["metrics"]
    for policy in ("ppo", "dqn"):
        assert last[f"{policy}.mean_return"] > first[f"{policy}.mean_return"] + 4.0, policy
    counters = summary["counters"]
    in_flight = env_steps_in_flight(counters)
    assert counters["env_steps_sampled"] == counters["env_steps_trained"] + in_flight == counters["agent_steps{ppo}"] + in_flight
    assert counters["agent_steps{ppo}"] - counters["agent_steps{dqn}"] in (
        0,
        512,
        1024,
    )  # one rollout of an actor is 8 * 64 steps
    assert counters["updates{ppo}"] > 0 and counters["updates{dqn}"] > 0


@dataclass(frozen=True)
class Weights:
    version: int
    tensors: Mapping[str, Any]


def test_self_play_beats_what_it_was_at_the_start(tmp_path: Path) -> None:
    """With a win rate that it never reaches, the league stays what it was at the start."""
    _, told = trained("self-play", "Pursuit", steps=60_000, runs_dir=tmp_path, rollout_steps=64, snapshot_win_rate=1.0)
    assert told[-1]["metrics"]["main.newest_snapshot"] == 0
    assert told[-1]["metrics"]["main.mean_return"] > 0.5


def test_an_untrained_policy_is_even_with_itself() -> None:
    """What the test above is measured against: the first snapshot against equal weights wins about half."""
    environment = ParallelEnvironments(Pursuit, name="pursuit", seeds=range(64))
    agent: Any = make_agent(
        "self-play", {"latest_share": 0.0}, observation=environment.observation_leaves, actions=environment.action_leaves
    )
    league = agent.make_policy(envs=64, generator=child_generator(0, "act"))
    league.load(Weights(1, agent.learning(seed=0).tensors(env_steps=0)))
    seen, first = environment.reset(), np.ones(64, np.bool_)
    score: list[float] = []
    for _ in range(100):
        league.begin(first=first, over=np.zeros(64, np.bool_))
        seats = league.seats.copy()
        step = environment.step(league.act(seen))
        if step.final is not None:
            rewards = step.final.observation["observation.all.reward"]
            score += rewards[np.arange(len(rewards)), seats[step.final.environments]].tolist()
        seen, first = step.observation, step.terminated | step.truncated
    assert len(score) > 500
    assert abs(float(np.mean(score))) < 0.1
