"""A2C, IMPALA and APPO from an actor's rows to the learner's update, in one thread: aligned rows, memory, spaces, state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rollstream.acting import ActorProcess, Policy
from rollstream.algorithms import make_agent, make_flow
from rollstream.algorithms.evaluation import LocalWeights
from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, make_environment
from rollstream.flow import Description
from rollstream.flow.steps import advantages, trajectories
from rollstream.graph import build_acting
from rollstream.seeding import child_generator
from rollstream.spaces import Batch, row_spec

ENVS = 16


class SideEnvironment(gymnasium.Env[Any, Any]):
    """Episodes of `length` steps; each step earns minus the distance of the action from a side that the observation shows."""

    def __init__(self, *, length: int, end: str) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (1,))
        self.action_space = spaces.Box(-2.0, 2.0, (1,))
        self._length, self._end = length, end
        self._side, self._step = 1.0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._step = 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        reward = -float(abs(action[0] - self._side))
        self._step += 1
        over = self._step == self._length
        return self._seen(), reward, over and self._end == "terminated", over and self._end == "truncated", {}

    def _seen(self) -> Any:
        self._side = float(self.np_random.choice([-1.0, 1.0]))
        return np.array([self._side], np.float32)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    gymnasium.register("Side-v0", entry_point=SideEnvironment)
    yield
    del gymnasium.registry["Side-v0"]


class Board:
    newest: LocalWeights | None = None

    def fetch_if_newer(self, than: int) -> LocalWeights | None:
        return self.newest


class Training:
    """Actor and learner as in a cell, in one thread."""

    def __init__(
        self, algorithm: str, *, autoreset: Any = "same_step", end: str = "terminated", length: int = 3, **settings: Any
    ):
        given = {"hidden": [16], "learning_rate": 1e-2, "rollout_steps": 8, "discount": 0.0, "mode": "numpy", **settings}
        vtrace = {"sequence_steps": 8, "batch_sequences": ENVS, "entropy_coefficient": 0.0}
        spec = EnvironmentSpec(id="Side-v0", kwargs={"length": length, "end": end}, vectorization="sync", autoreset=autoreset)
        environment = make_environment(spec, envs=ENVS, seed=1, allow=())
        self.agent: Any = make_agent(
            algorithm,
            given if algorithm == "a2c" else {**vtrace, **given},
            observation=environment.observation_leaves,
            actions=environment.action_leaves,
        )
        config = self.agent.config
        self.learning = self.agent.learning(seed=1)
        policy = Policy(
            acting=build_acting(self.agent.policy, batch=ENVS, mode="numpy"),
            actions=self.agent.actions,
            extra=self.agent.extra_columns,
            generator=child_generator(1, "exploration"),
        )
        rows = row_spec(environment.observation_leaves, environment.action_leaves, extra=self.agent.extra_columns)
        self._board = Board()
        self._side = ActorProcess(
            actor="actor-0",
            clock=FakeClock(),
            source=Collector(environment, row_spec=rows, policy=policy, clock=FakeClock()),
            policy=policy,
            weights=self._board,
            sink=lambda table, rule, environments: pytest.fail("there is no table"),
        )
        step = (
            advantages(discount=config.discount, gae_lambda=1.0) if algorithm == "a2c" else trajectories(discount=config.discount)
        )
        self._cut = step.bind(self._side)
        self._version = 0
        self._has_target = algorithm == "appo"

    def rows(self) -> Batch:
        self._version += 1
        self._board.newest = LocalWeights(version=self._version, tensors=self.learning.tensors(env_steps=0))
        batch: Batch = self._cut(self._side.collect(steps=self.agent.config.rollout_steps))
        return batch

    def round(self) -> tuple[Batch, dict[str, float]]:
        batch = self.rows()
        learned = self.learning.learn(batch, env_steps=0)
        if self._has_target:
            self.learning.sync_target()
        return batch, dict(learned.metrics)


def reward_of(batch: Batch) -> float:
    return float(batch.episodes.returns.mean())


@pytest.mark.parametrize("autoreset", ["same_step", "next_step"])
@pytest.mark.parametrize("end", ["terminated", "truncated"])
@pytest.mark.parametrize("recurrent", [None, "gru", "lstm"])
def test_the_first_ratio_of_v_trace_is_one(recurrent: str | None, end: str, autoreset: str) -> None:
    """Rows, actions and what the policy remembered fit together, also where sequences begin in the middle of a rollout."""
    training = Training(
        "impala", recurrent=recurrent, end=end, autoreset=autoreset, sequence_steps=3, batch_sequences=8 * ENVS, recurrent_units=4
    )
    for _ in range(3):
        _, metrics = training.round()
        assert metrics["ratio"] == pytest.approx(1.0, abs=1e-4)
        assert metrics["updates"] == 1


@pytest.mark.parametrize("algorithm", ["a2c", "impala", "appo"])
def test_it_learns(algorithm: str) -> None:
    training = Training(algorithm) if algorithm == "a2c" else Training(algorithm, batch_sequences=4, rho_clip=2.0)
    first = reward_of(training.round()[0])
    for _ in range(40):
        last, metrics = training.round()
    assert reward_of(last) > 0.5 * first  # both negative: half of the error is gone
    assert metrics["skipped_updates"] == 0


@pytest.mark.parametrize("algorithm", ["a2c", "impala", "appo"])
def test_a_restored_learner_goes_on_as_the_saved_one(algorithm: str) -> None:
    training, other = (
        Training(algorithm, normalize_observations=True, batch_sequences=5)
        if algorithm != "a2c"
        else Training(algorithm, normalize_observations=True)
        for _ in range(2)
    )
    training.round()
    batch = training.rows()
    other.learning.restore(training.learning.state())
    for one in (training, other):
        one.learning.learn(batch, env_steps=0)
    tensors = other.learning.tensors(env_steps=0)
    assert any(name.endswith("count") for name in tensors)
    for name, tensor in training.learning.tensors(env_steps=0).items():
        np.testing.assert_array_equal(tensors[name], tensor)


def test_what_is_learned_from_again_is_observed_once() -> None:
    training = Training("impala", normalize_observations=True)
    batch = training.rows()
    training.learning.learn(batch, env_steps=0)
    again = Batch(columns=batch.columns, env_steps=0, version=1, newest_version=1)
    count = training.learning.tensors(env_steps=0)["preprocessing.observation.0.count"]
    training.learning.learn(again, env_steps=0)
    assert training.learning.tensors(env_steps=0)["preprocessing.observation.0.count"] == count


@pytest.mark.parametrize(
    ("algorithm", "kinds"),
    [
        ("a2c", ["rollouts", "for_each", "gather_sync", "for_each", "for_each", "report"]),
        ("impala", ["rollouts", "for_each", "gather_async", "filter", "batch", "mix_replay", "for_each", "for_each", "report"]),
        ("maml", ["generate", "gather_sync", "for_each", "for_each", "report"]),
    ],
)
def test_flows_are_as_the_papers_draw_them(algorithm: str, kinds: list[str]) -> None:
    environment = make_environment(
        EnvironmentSpec(id="Side-v0", kwargs={"length": 3, "end": "truncated"}), envs=1, seed=1, allow=()
    )
    agent = make_agent(algorithm, {}, observation=environment.observation_leaves, actions=environment.action_leaves)
    assert [node.kind for node in Description(make_flow(algorithm, agent, actors=2)).nodes] == kinds
