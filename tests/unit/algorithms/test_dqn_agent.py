"""What DQN minimizes and hands on: the form of the loss, priorities, and epsilon for the actors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rollstream.algorithms.dqn.agent import DqnAgent
from rollstream.algorithms.dqn.config import DqnConfig, RainbowConfig
from rollstream.learning import Learned, LearningAgent
from rollstream.spaces import Batch, Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(4,)),)
ACTION = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
REWARD = 50.0


HALVES = (slice(0, 4), slice(4, 8))


@dataclass
class Drawn:
    """Eight items of two rows, drawn with these probabilities."""

    probability: npt.NDArray[np.float64]
    table_items: int = 8
    core_start: int = 0

    @property
    def rows(self) -> Mapping[str, npt.NDArray[Any]]:
        columns = {
            "observation": ((4,), np.float32),
            "action": ((), np.int64),
            "reward": ((), np.float32),
            "flags": ((), np.uint8),
        }
        return {name: np.zeros((8, 2, *shape), dtype) for name, (shape, dtype) in columns.items()}

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        return np.full(8, 2, np.int32)

    @property
    def lead(self) -> npt.NDArray[np.int32]:
        return np.zeros(8, np.int32)


def items(count: int) -> dict[str, npt.NDArray[Any]]:
    """Terminal items of random observations and rewards."""
    generator = np.random.default_rng(0)
    draw = generator.standard_normal
    columns: dict[str, Any] = {"observation": draw((count, 4)).astype(np.float32), "discount": np.zeros(count, np.float32)}
    columns |= {"reward": draw(count).astype(np.float32), "action": generator.integers(0, 2, count)}
    return columns | {"next_observation": columns["observation"]}


def batch_of(columns: Mapping[str, npt.NDArray[Any]]) -> Batch:
    return Batch(columns=columns, env_steps=0, version=1, newest_version=1)


def learning(**settings: Any) -> LearningAgent:
    config = DqnConfig(batch_items=4, **settings)
    return DqnAgent(config, observation=OBSERVATION, actions=(ACTION,)).learning(seed=0)


def learned(agent: LearningAgent) -> Learned:
    """From 4 terminal items of a zero observation: all values are 0 at first, so each error is the reward."""
    zeros = np.zeros((4, 4), np.float32)
    columns: dict[str, Any] = {"observation": zeros, "next_observation": zeros, "action": np.zeros(4, np.int64)}
    columns |= {"reward": np.full(4, REWARD, np.float32), "discount": np.zeros(4, np.float32)}
    batch = Batch(columns=columns, env_steps=0, version=1, newest_version=1)
    return agent.learn(batch, env_steps=0)


def test_errors_are_squared_by_default() -> None:
    assert learned(learning()).metrics["loss"] == pytest.approx(0.5 * REWARD**2)


def test_errors_beyond_huber_delta_count_linearly() -> None:
    assert learned(learning(huber_delta=2.0)).metrics["loss"] == pytest.approx(2.0 * (REWARD - 1.0))


def test_the_priority_is_the_error_plus_a_floor() -> None:
    assert learned(learning()).columns["td_error"] == pytest.approx(np.full(4, REWARD + 1e-3))


def test_a_sample_of_several_batches_is_as_many_updates_each_with_its_own_items() -> None:
    """What was learned, and the priorities, are those of the same batches one after another."""
    columns = items(8)
    together, apart = learning(), learning()
    both = together.learn(batch_of(columns), env_steps=0)
    parts = [apart.learn(batch_of({name: column[part] for name, column in columns.items()}), env_steps=0) for part in HALVES]
    assert both.updates == both.metrics["updates"] == 2
    assert both.columns["td_error"].tolist() == [*parts[0].columns["td_error"], *parts[1].columns["td_error"]]
    assert both.metrics["loss"] == pytest.approx((parts[0].metrics["loss"] + parts[1].metrics["loss"]) / 2)
    for name, tensor in together.tensors(env_steps=0).items():
        assert tensor.tolist() == apart.tensors(env_steps=0)[name].tolist()


def test_each_update_has_importance_weights_of_its_own() -> None:
    """The largest weight of each batch is 1, whatever the other batches of the sample hold."""
    drawn = Drawn(probability=np.array([0.1, 0.2, 0.2, 0.4, 0.4, 0.8, 0.8, 0.8]))
    weight = learning(importance_exponent=1.0).columns(drawn, env_steps=0)["weight"]
    assert weight == pytest.approx(np.array([1.0, 0.5, 0.5, 0.25, 1.0, 0.5, 0.5, 0.5]))


@pytest.mark.parametrize(("env_steps", "epsilon"), [(0, 1.0), (500, 0.55), (1_000, 0.1), (9_999, 0.1)])
def test_epsilon_falls_with_environment_steps_and_travels_with_the_weights(env_steps: int, epsilon: float) -> None:
    agent = learning(epsilon_start=1.0, epsilon_end=0.1, epsilon_decay_steps=1_000)
    assert agent.tensors(env_steps=env_steps)["scalar.epsilon"] == pytest.approx([epsilon])


@pytest.mark.parametrize("distribution", ["c51", "quantile"])
def test_distributions_of_returns_are_learned(distribution: str) -> None:
    """All four items end with reward 3: the value of the action comes near it."""
    agent = learning(
        distribution=distribution, distribution_atoms=21, distribution_low=-5.0, distribution_high=5.0, learning_rate=1e-2
    )
    ones = np.ones((4, 4), np.float32)
    columns: dict[str, Any] = {"observation": ones, "next_observation": ones, "action": np.zeros(4, np.int64)}
    columns |= {"reward": np.full(4, 3.0, np.float32), "discount": np.zeros(4, np.float32)}
    batch = Batch(columns=columns, env_steps=0, version=1, newest_version=1)
    for _ in range(150):
        metrics = dict(agent.learn(batch, env_steps=0).metrics)
    assert metrics["q_value"] == pytest.approx(3.0, abs=0.2)


def test_settings_of_distributions_that_contradict_are_refused() -> None:
    with pytest.raises(ValueError, match="dueling has no quantiles; use dueling=false, or distribution c51"):
        DqnConfig(distribution="quantile", dueling=True)
    with pytest.raises(ValueError, match=r"distribution_low \(3\) must be < distribution_high \(2\)"):
        DqnConfig(distribution="c51", distribution_low=3.0, distribution_high=2.0)


def test_images_and_their_preprocessing_are_settings() -> None:
    image = Leaf(name="observation", kind="box", dtype="|u1", shape=(48, 48, 3), low=(0.0,) * 6912, high=(255.0,) * 6912)
    chain: Any = {"observation": [{"kind": "grayscale"}, {"kind": "resize", "height": 40, "width": 40}]}
    config = DqnConfig(batch_items=4, convolutions="nature", preprocessing=chain)
    agent = DqnAgent(config, observation=(image,), actions=(ACTION,))
    frames = np.random.default_rng(0).integers(0, 256, (4, 48, 48, 3)).astype(np.uint8)
    columns: dict[str, Any] = {"observation": frames, "next_observation": frames, "action": np.zeros(4, np.int64)}
    columns |= {"reward": np.ones(4, np.float32), "discount": np.zeros(4, np.float32)}
    batch = Batch(columns=columns, env_steps=0, version=1, newest_version=1)
    assert agent.learning(seed=0).learn(batch, env_steps=0).metrics["updates"] == 1


def test_the_noise_of_a_noisy_network_goes_on_after_a_restart() -> None:
    """Rainbow's settings: no epsilon, noise in the weights; the update after a restart is the one that would have come."""
    agent = rainbow()
    learned(agent)
    state = agent.state()
    again = rainbow()
    again.restore(state)
    assert learned(again).metrics["loss"] == learned(agent).metrics["loss"]
    fresh = rainbow()
    fresh.update.load_state(state["update"])
    assert learned(fresh).metrics["loss"] != learned(again).metrics["loss"]
    assert agent.tensors(env_steps=0)["scalar.epsilon"] == [0.0]


def test_the_size_of_the_noise_at_the_start_is_a_setting() -> None:
    agent = learning(noisy=True, dueling=True, noise_deviation=0.2, hidden=(8, 16))
    deviations = {name: tensor for name, tensor in agent.tensors(env_steps=0).items() if "weight_deviation" in name}
    assert len(deviations) == 3  # the last hidden layer, and both streams
    for tensor in deviations.values():
        assert tensor == pytest.approx(np.full(tensor.shape, 0.2 / np.sqrt(len(tensor))))


def rainbow() -> Any:
    config = RainbowConfig(batch_items=4, distribution_low=0.0, distribution_high=100.0)
    return DqnAgent(config, observation=OBSERVATION, actions=(ACTION,)).learning(seed=0)
