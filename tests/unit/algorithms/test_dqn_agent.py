"""What DQN minimizes and hands on: the form of the loss, priorities, and epsilon for the actors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.algorithms.dqn.agent import DqnAgent
from rollstream.algorithms.dqn.config import DqnConfig
from rollstream.learning import Learned, LearningAgent
from rollstream.spaces import Batch, Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(4,)),)
ACTION = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
REWARD = 50.0


def learning(**settings: Any) -> LearningAgent:
    config = DqnConfig(batch_items=4, **settings)
    return DqnAgent(config, observation=OBSERVATION, actions=(ACTION,)).learning(seed=0)


def learned(agent: LearningAgent) -> Learned:
    """From 4 terminal items of a zero observation: all values are 0 at first, so each error is the reward."""
    zeros = np.zeros((4, 4), np.float32)
    columns = {"observation": zeros, "next_observation": zeros, "action": np.zeros(4, np.int64)}
    columns |= {"reward": np.full(4, REWARD, np.float32), "discount": np.zeros(4, np.float32)}
    batch = Batch(columns=columns, env_steps=0, version=1, newest_version=1)
    return agent.learn(batch, env_steps=0)


def test_errors_are_squared_by_default() -> None:
    assert learned(learning()).metrics["loss"] == pytest.approx(0.5 * REWARD**2)


def test_errors_beyond_huber_delta_count_linearly() -> None:
    assert learned(learning(huber_delta=2.0)).metrics["loss"] == pytest.approx(2.0 * (REWARD - 1.0))


def test_the_priority_is_the_error_plus_a_floor() -> None:
    assert learned(learning()).columns["td_error"] == pytest.approx(np.full(4, REWARD + 1e-3))


@pytest.mark.parametrize(("env_steps", "epsilon"), [(0, 1.0), (500, 0.55), (1_000, 0.1), (9_999, 0.1)])
def test_epsilon_falls_with_environment_steps_and_travels_with_the_weights(env_steps: int, epsilon: float) -> None:
    agent = learning(epsilon_start=1.0, epsilon_end=0.1, epsilon_decay_steps=1_000)
    assert agent.tensors(env_steps=env_steps)["scalar.epsilon"] == pytest.approx([epsilon])
