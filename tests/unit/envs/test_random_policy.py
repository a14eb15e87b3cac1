"""Random actions: inside of every kind of space, and the same for the same generator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.envs import RandomPolicy
from rollstream.spaces import leaves

OBSERVATION = {"observation": np.zeros((64, 1), np.float32)}


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3, start=-1),
        spaces.MultiDiscrete(np.array([[2, 3], [4, 5]]), start=np.array([[0, 1], [-1, 2]])),
        spaces.MultiBinary((2, 2)),
        spaces.Box(-2.0, 3.0, (2,), np.float64),
        spaces.Box(np.array([-np.inf, 0.0, -np.inf], np.float32), np.array([np.inf, np.inf, 5.0], np.float32)),
        spaces.Box(0, 255, (2,), np.uint8),
    ],
)
def test_actions_lie_in_the_space_and_use_all_of_it(space: spaces.Space[Any]) -> None:
    policy = RandomPolicy(leaves(space, "action"), generator=np.random.default_rng(1))
    actions = policy.act(OBSERVATION)["action"]
    assert all(space.contains(action) for action in actions)
    assert len(np.unique(actions.reshape(64, -1)[:, 0])) > 1


def test_equal_generators_give_equal_actions() -> None:
    space = spaces.Dict({"a": spaces.Discrete(9), "b": spaces.Box(-1, 1, (3,))})
    first, second = (RandomPolicy(leaves(space, "action"), generator=np.random.default_rng(7)).act(OBSERVATION) for _ in range(2))
    assert list(first) == ["action.a", "action.b"]
    assert all(np.array_equal(first[name], second[name]) for name in first)
