"""PPO learns CartPole-v1 with its defaults, and its critic is right about time limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rollstream.acting import ActorProcess, Policy
from rollstream.algorithms.evaluation import LocalWeights
from rollstream.algorithms.ppo.agent import PpoAgent
from rollstream.algorithms.ppo.config import PpoConfig
from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, make_environment
from rollstream.flow.steps import advantages
from rollstream.graph import build_acting
from rollstream.seeding import child_generator
from rollstream.spaces import row_spec

GOAL = 475.0
STOP_RETURN = 485.0
"""As `make train`: a little above the goal, so that the greedy policy is past it too."""
LIMIT_STEPS = 600_000
LIMIT_S = 600.0
EPISODE_STEPS = 10
DISCOUNT = 0.9


@pytest.mark.learning
@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("seed", range(2))
def test_ppo_solves_cartpole_with_its_defaults(seed: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rollstream_cli", "train", "ppo", "--env", "CartPole-v1", "--seed", str(seed)]
    command += ["--stop-return", str(STOP_RETURN), "--stop-steps", str(LIMIT_STEPS), "--json", "summary.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    summary: dict[str, Any] = json.loads((tmp_path / "summary.json").read_text())
    counters = summary["counters"]
    dropped = sum(count for name, count in counters.items() if name.startswith("env_steps_dropped"))
    in_flight = counters["env_steps_sampled"] - counters["env_steps_trained"] - dropped
    assert summary["phase"] == "succeeded"
    assert summary["training_mean_return"] >= STOP_RETURN
    assert summary["mean_return"] >= GOAL
    assert summary["env_steps"] == counters["env_steps_sampled"] < LIMIT_STEPS
    assert 0 <= in_flight <= 2 * 2 * 8 * PpoConfig().rollout_steps  # two actors of 8 copies, at most two messages each
    assert summary["updates"] == counters["updates"] > 0
    assert summary["actors_contributed"] == 2


class OneRewardEnvironment(gymnasium.Env[Any, Any]):
    """Reward 1 a step for 10 steps. Ended by a time limit it has one state; ended for good its state is the step."""

    def __init__(self, *, truncates: bool) -> None:
        self.observation_space = spaces.Discrete(EPISODE_STEPS + 1)
        self.action_space = spaces.Discrete(2)
        self._truncates = truncates
        self._step = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self._step += 1
        ended = self._step == EPISODE_STEPS
        return 0 if self._truncates else self._step, 1.0, ended and not self._truncates, ended and self._truncates, {}


@pytest.fixture
def one_reward() -> Any:
    """Registers the environment under two ids."""
    ids = {truncates: f"OneReward{'Truncated' if truncates else 'Terminated'}-v0" for truncates in (True, False)}
    for truncates, name in ids.items():
        gymnasium.register(id=name, entry_point=OneRewardEnvironment, kwargs={"truncates": truncates})
    yield ids
    for name in ids.values():
        del gymnasium.registry[name]


def test_o25_a_trained_critic_bootstraps_at_a_time_limit(one_reward: dict[bool, str]) -> None:
    assert first_value(one_reward[True]) == pytest.approx(1 / (1 - DISCOUNT), rel=0.02)


def test_o25_a_trained_critic_does_not_bootstrap_at_the_end(one_reward: dict[bool, str]) -> None:
    assert first_value(one_reward[False]) == pytest.approx((1 - DISCOUNT**EPISODE_STEPS) / (1 - DISCOUNT), rel=0.02)


def first_value(environment_id: str) -> float:
    """Value of the first observation after training PPO: actor, advantages and updates as in a cell, in one thread."""
    config = PpoConfig(discount=DISCOUNT, hidden=(16,), learning_rate=1e-2, learning_rate_decay_steps=20_000, rollout_steps=32)
    environment = make_environment(EnvironmentSpec(id=environment_id), envs=8, seed=1, allow=())
    agent = PpoAgent(config, observation=environment.observation_leaves, actions=environment.action_leaves)
    learning = agent.learning(seed=1)
    policy = Policy(
        acting=build_acting(agent.policy, batch=8),
        actions=agent.actions,
        extra=agent.extra_columns,
        generator=child_generator(1, "exploration"),
    )
    rows = row_spec(environment.observation_leaves, environment.action_leaves, extra=agent.extra_columns)
    clock = FakeClock()
    board = _Board()
    side = ActorProcess(
        actor="actor-0",
        clock=clock,
        source=Collector(environment, row_spec=rows, policy=policy, clock=clock),
        policy=policy,
        weights=board,
        sink=_no_table,
    )
    estimate = advantages(discount=config.discount, gae_lambda=config.gae_lambda).bind(side)
    for version in range(1, 81):
        board.newest = LocalWeights(version=version, tensors=learning.tensors(env_steps=0))
        batch = estimate(side.collect(steps=config.rollout_steps))
        learning.learn(batch, env_steps=version * batch.rows)
    board.newest = LocalWeights(version=81, tensors=learning.tensors(env_steps=0))
    side.pull()
    environment.close()
    return float(side.values({"observation": np.zeros(8, np.int64)})[0])


class _Board:
    newest: LocalWeights | None = None

    def fetch_if_newer(self, than: int) -> LocalWeights | None:
        return self.newest if self.newest is not None and self.newest.version > than else None


def _no_table(table: str, rule: Any, environments: int) -> Any:
    raise AssertionError(f"PPO has no table {table}")
