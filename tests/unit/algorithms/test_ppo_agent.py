"""PPO on other spaces than CartPole's: it learns in Box and MultiDiscrete, and normalized observations are the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

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
from rollstream.spaces import Batch, row_spec

ENVS = 32
LARGE = {"scale": 1e5, "centre": 30.0}
"""Observations of 2.9 and 3.1 millions."""
ACTIONS: dict[str, gymnasium.Space[Any]] = {
    "box": spaces.Box(-2.0, 6.0, (1,)),
    "multi-discrete": spaces.MultiDiscrete([3, 4], start=[-1, 1]),
    "multi-binary": spaces.MultiBinary(3),
    "nested": spaces.Dict({"a": spaces.Discrete(3, start=5), "b": spaces.Box(-1.0, 1.0, (1,))}),
    "masked": spaces.Discrete(4),
}


class TargetEnvironment(gymnasium.Env[Any, Any]):
    """Episodes of one step; the reward is 0 for the right action, and negative by how far it is off. Observations are one of two
    numbers, scale * (centre - 1) and scale * (centre + 1); with a mask, the right action is forbidden half of the time."""

    def __init__(self, *, actions: str, scale: float = 1.0, centre: float = 0.0) -> None:
        self.action_space = ACTIONS[actions]
        seen = spaces.Box(-np.inf, np.inf, (1,))
        mask = spaces.MultiBinary(4)
        self._masked = actions == "masked"
        self.observation_space = spaces.Dict({"x": seen, "action_mask": mask}) if self._masked else seen
        self._scale, self._centre = scale, centre
        self._side = 1.0
        self._allowed = np.ones(4, np.int8)

    def _seen(self) -> Any:
        x = np.array([self._scale * (self._centre + self._side)], np.float32)
        return {"x": x, "action_mask": self._allowed} if self._masked else x

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._side = float(self.np_random.choice([-1.0, 1.0]))
        self._allowed = np.array([1, 1, 1, self.np_random.integers(0, 2)], np.int8)
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        if self._masked:
            assert self._allowed[action]
            return self._seen(), float(action) - 3.0, True, False, {}
        if isinstance(action, dict):
            reward = -float(action["a"] != 6) - float(np.abs(action["b"][0] - 0.5 * self._side))
        elif isinstance(self.action_space, spaces.Box):
            reward = -float(np.abs(action[0] - 2.0 - 2.0 * self._side))
        elif isinstance(self.action_space, spaces.MultiBinary):
            reward = -float(np.abs(action - np.array([1, 0, self._side > 0])).sum())
        else:
            reward = -float(action[0] != self._side) - float(action[1] != 2)
        return self._seen(), reward, True, False, {}


class CueEnvironment(gymnasium.Env[Any, Any]):
    """The first of three observations says which action earns a reward at the third; the others are blank."""

    observation_space = spaces.Box(-1.0, 1.0, (1,))
    action_space = spaces.Discrete(2)
    _cue = 0
    _step = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._cue, self._step = int(self.np_random.integers(0, 2)), 0
        return np.array([2.0 * self._cue - 1.0], np.float32), {}

    def step(self, action: Any) -> Any:
        self._step += 1
        over = self._step == 3
        return np.zeros(1, np.float32), float(over and action == self._cue), over, False, {}


def _made(**kwargs: Any) -> TargetEnvironment:
    return TargetEnvironment(**kwargs)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    gymnasium.register("Target-v0", entry_point=_made)
    gymnasium.register("Cue-v0", entry_point=CueEnvironment)
    yield
    del gymnasium.registry["Target-v0"], gymnasium.registry["Cue-v0"]


class Board:
    newest: LocalWeights | None = None

    def fetch_if_newer(self, than: int) -> LocalWeights | None:
        return self.newest


class Training:
    """Actor, advantages and learner as in a cell, in one thread."""

    def __init__(
        self,
        *,
        actions: str = "",
        seen: dict[str, float] | None = None,
        environment_id: str = "Target-v0",
        autoreset: Literal["same_step", "next_step"] = "same_step",
        **settings: Any,
    ) -> None:
        given = {
            "hidden": (16,),
            "learning_rate": 1e-2,
            "rollout_steps": 8,
            "batch_rows": 128,
            "discount": 0.0,
            "mode": "numpy",
            **settings,
        }
        self.config = PpoConfig(**given)
        kwargs: dict[str, Any] = {"actions": actions, **(seen or {})} if actions else {}
        spec = EnvironmentSpec(id=environment_id, kwargs=kwargs, vectorization="sync", autoreset=autoreset)
        environment = make_environment(spec, envs=ENVS, seed=1, allow=())
        self.agent = PpoAgent(self.config, observation=environment.observation_leaves, actions=environment.action_leaves)
        self.learning = self.agent.learning(seed=1)
        self.policy = Policy(
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
            source=Collector(environment, row_spec=rows, policy=self.policy, clock=FakeClock()),
            policy=self.policy,
            weights=self._board,
            sink=lambda table, rule, environments: pytest.fail("PPO has no table"),
        )
        self._estimate = advantages(discount=self.config.discount, gae_lambda=1.0).bind(self._side)
        self._version = 0
        self.publish()

    def publish(self) -> None:
        self._version += 1
        self._board.newest = LocalWeights(version=self._version, tensors=self.learning.tensors(env_steps=0))

    def round(self) -> tuple[Batch, dict[str, float]]:
        """One round; the data, and the metrics of the updates."""
        batch = self._estimate(self._side.collect(steps=self.config.rollout_steps))
        learned = self.learning.learn(batch, env_steps=0)
        self.publish()
        return batch, dict(learned.metrics)


def reward_of(batch: Batch) -> float:
    return float(batch.columns["return"].mean())  # episodes of one step


@pytest.mark.parametrize(
    ("actions", "settings"),
    [
        ("box", {}),
        ("box", {"box_bounds": "squash"}),
        ("multi-discrete", {}),
        ("multi-binary", {}),
        ("nested", {"autoregressive": True}),
        ("masked", {}),
    ],
)
def test_ppo_learns_in_every_kind_of_space(actions: str, settings: dict[str, Any]) -> None:
    training = Training(actions=actions, **settings)
    first = reward_of(training.round()[0])
    for _ in range(24):
        last, metrics = training.round()
    assert reward_of(last) > 0.4 * first  # both negative: at least 60 % of the error is gone
    assert metrics["skipped_updates"] == 0


@pytest.mark.parametrize("actions", sorted(ACTIONS))
def test_the_first_ratio_is_one(actions: str) -> None:
    training = Training(actions=actions, epochs=1, batch_rows=8 * ENVS)
    assert abs(training.round()[1]["approximate_kl"]) < 1e-6


def test_normalized_observations_are_the_same_in_acting_learning_and_evaluation() -> None:
    training = Training(actions="box", seen=LARGE, normalize_observations=True, epochs=1, batch_rows=8 * ENVS)
    for _ in range(3):
        _, metrics = training.round()
        assert abs(metrics["approximate_kl"]) < 1e-6  # judged as acted, though the numbers are in the millions
    tensors = training.learning.tensors(env_steps=0)
    seen = 1e6 * np.array([[2.9], [3.1]], np.float32)
    mean, variance = (tensors[f"preprocessing.observation.0.{name}"] for name in ("mean", "variance"))
    assert mean == pytest.approx([3e6], rel=0.01)
    assert np.sqrt(variance) == pytest.approx([1e5], rel=0.05)
    assert tensors["preprocessing.observation.0.count"] == 3 * 8 * ENVS
    plain = Training(actions="box")
    parameters = {name: tensor for name, tensor in tensors.items() if not name.startswith("preprocessing")}
    plain.policy.load(LocalWeights(version=9, tensors=parameters))
    training.policy.load(LocalWeights(version=9, tensors=tensors))
    normalized = ((seen - mean) / np.sqrt(variance)).astype(np.float32)
    for api in ("greedy", "values"):
        by_us, by_hand = (
            getattr(policy, api)({"observation": np.resize(x, (ENVS, 1))})
            for policy, x in ((training.policy, seen), (plain.policy, normalized))
        )
        found, expected = (out["action"] if api == "greedy" else out for out in (by_us, by_hand))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        assert found[0] != found[1]


def test_statistics_are_in_the_state_and_come_back() -> None:
    settings: dict[str, Any] = {"seen": LARGE, "normalize_observations": True}
    training, restored = Training(actions="box", **settings), Training(actions="box", **settings)
    training.round()
    restored.learning.restore(training.learning.state())
    tensors = restored.learning.tensors(env_steps=0)
    assert tensors["preprocessing.observation.0.count"] == 8 * ENVS
    for name, tensor in training.learning.tensors(env_steps=0).items():
        np.testing.assert_array_equal(tensors[name], tensor)


def test_normalization_helps_where_numbers_are_large() -> None:
    """Two observations 3 % apart, in the millions: without statistics a network cannot tell them apart."""
    with_them = Training(actions="box", seen=LARGE, normalize_observations=True)
    without = Training(actions="box", seen=LARGE)
    for _ in range(25):
        found, other = with_them.round()[0], without.round()[0]
    assert reward_of(found) > 0.5 * reward_of(other)


@pytest.mark.parametrize("autoreset", ["same_step", "next_step"])
@pytest.mark.parametrize("recurrent", ["lstm", "gru"])
def test_what_was_acted_in_an_episode_is_judged_the_same_in_sequences(
    recurrent: str, autoreset: Literal["same_step", "next_step"]
) -> None:
    training = Training(
        environment_id="Cue-v0",
        autoreset=autoreset,
        recurrent=recurrent,
        recurrent_units=8,
        sequence_steps=5,
        batch_rows=4_000,
        epochs=1,
    )
    for _ in range(3):
        assert abs(training.round()[1]["approximate_kl"]) < 1e-6


def test_a_policy_that_remembers_learns_what_one_observation_does_not_tell() -> None:
    settings: dict[str, Any] = {"environment_id": "Cue-v0", "rollout_steps": 12, "discount": 0.9}
    training = Training(**settings, recurrent="gru", recurrent_units=8, sequence_steps=6)
    other = Training(**settings)
    for _ in range(40):
        found, forgetful = training.round()[0], other.round()[0]
    assert found.episodes.returns.mean() > 0.9
    assert forgetful.episodes.returns.mean() < 0.7


def test_a_minibatch_holds_a_whole_sequence() -> None:
    with pytest.raises(ValueError, match=r"batch_rows \(8\) must be >= sequence_steps \(16\): a minibatch holds whole sequences"):
        PpoConfig(recurrent="lstm", batch_rows=8)
