"""Algorithms for several agents in inline mode, with agents that come and go: counters add up, and a run repeats bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollstream.config import ExperimentSpec
from rollstream.metrics import env_steps_in_flight
from rollstream_cli.inline import run

TOYS = "rollstream.envs.multi_agent.toy"
AGENT_STEPS = {"host": 6, "early": 2, "late": 3, "brief": 1}
"""Steps that each agent of `Visitors` takes in an episode of 6 environment steps."""


def trained(algorithm: str, game: str, runs_dir: Path, *, steps: int = 768, **settings: Any) -> dict[str, Any]:
    spec = ExperimentSpec.model_validate(
        {
            "algorithm": algorithm,
            "environment": {"id": f"{TOYS}:{game}"},
            "settings": settings,
            "actors": 2,
            "envs_per_actor": 2,
            "stop": {"env_steps": steps},
            "evaluation_episodes": 2,
        }
    )
    return run(spec, runs_dir=runs_dir, report=lambda report: None, allow=(TOYS,))


def two_trainers(runs_dir: Path) -> dict[str, Any]:
    ppo = {"rollout_steps": 48, "hidden": [8], "epochs": 1, "batch_rows": 64}
    dqn = {"hidden": [8], "min_items": 50, "ratio_tolerance_items": 500, "batch_items": 16, "n_step": 2}
    policies = {"ppo": {"agents": ["host", "late"]}, "dqn": {}}
    return trained("two-trainer", "Visitors", runs_dir, ppo=ppo, dqn=dqn, policies=policies)


def test_two_trainers_count_every_step_once_and_repeat_bit_for_bit(tmp_path: Path) -> None:
    first, second = two_trainers(tmp_path), two_trainers(tmp_path)
    assert first["weights_sha256"] == second["weights_sha256"]
    assert first["counters"] == second["counters"]
    counters = first["counters"]
    settled = counters["env_steps_trained"] + counters.get("env_steps_dropped", 0) + env_steps_in_flight(counters)
    assert counters["env_steps_sampled"] == settled
    episodes = counters["env_steps_sampled"] // 6
    assert counters["agent_steps{ppo}"] == episodes * (AGENT_STEPS["host"] + AGENT_STEPS["late"])
    assert counters["agent_steps{dqn}"] % (AGENT_STEPS["early"] + AGENT_STEPS["brief"]) == 0
    assert counters["updates{ppo}"] > 0 and counters["updates{dqn}"] > 0


def test_policies_of_their_own_learn_from_their_own_agents(tmp_path: Path) -> None:
    policies = {"stays": {"agents": ["host"]}, "comes_and_goes": {}}
    summary = trained("multi-ppo", "Visitors", tmp_path, policies=policies, rollout_steps=48, hidden=[8], epochs=1, batch_rows=32)
    counters = summary["counters"]
    assert counters["agent_steps{stays}"] == counters["env_steps_sampled"]
    assert counters["agent_steps{comes_and_goes}"] in {counters["env_steps_sampled"] - missing for missing in (0, 96, 192)}
    assert counters["updates{comes_and_goes}"] > 0


@pytest.mark.parametrize(("algorithm", "game"), [("self-play", "Pursuit"), ("qmix", "TwoStepGame")])
def test_one_policy_for_all_runs_to_its_stop_rule(algorithm: str, game: str, tmp_path: Path) -> None:
    small: dict[str, Any] = {"hidden": [8]}
    if algorithm == "qmix":
        small |= {"min_items": 50, "ratio_tolerance_items": 500, "batch_items": 16}
    summary = trained(algorithm, game, tmp_path, steps=600, **small)
    assert summary["env_steps"] >= 600
    assert summary["updates"] > 0


def test_any_other_algorithm_controls_all_agents_at_once(tmp_path: Path) -> None:
    summary = trained("ppo", "Meeting", tmp_path, steps=256, rollout_steps=32, hidden=[8], epochs=1, batch_rows=64)
    assert summary["counters"]["env_steps_trained"] == 256
