"""Observations outside of their bounds, in each of the ways to treat them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rollstream.envs.bounds import BoundedEnvironment
from rollstream.envs.vector_environment import FinalObservations, Step
from rollstream.errors import EnvironmentFault
from rollstream.spaces import Columns, Leaf, leaves

SPACE = spaces.Dict(
    {
        "x": spaces.Box(np.array([0.0, -np.inf], np.float32), np.array([1.0, 5.0], np.float32)),
        "n": spaces.Discrete(3, start=1),
        "bits": spaces.MultiBinary(2),
        "image": spaces.Box(0, 255, (2, 2, 1), np.uint8),
        "free": spaces.Box(-np.inf, np.inf, (1,)),
    }
)


class Given:
    """A vector environment that returns what it is told."""

    name, envs, resets_on_next_step = "given", 2, False
    action_leaves: tuple[Leaf, ...] = ()

    def __init__(self, space: gymnasium.Space[Any] = SPACE) -> None:
        self.observation_leaves = leaves(space, "observation")
        self.final: FinalObservations | None = None
        self.closed = False
        self.columns: dict[str, Any] = {
            "observation.x": np.array([[0.5, -9.0], [1.0, 5.0]], np.float32),
            "observation.n": np.array([1, 3]),
            "observation.bits": np.array([[0, 1], [1, 1]], np.int8),
            "observation.image": np.full((2, 2, 2, 1), 255, np.uint8),
            "observation.free": np.array([[1e30], [-1e30]], np.float32),
        }

    def reset(self, options: Mapping[str, Any] | None = None) -> Columns:
        return self.columns

    def step(self, actions: Columns) -> Step:
        none = np.zeros(2, np.bool_)
        return Step(observation=self.columns, reward=np.zeros(2), terminated=none, truncated=none, final=self.final)

    def close(self, *, timeout_s: float = 5.0) -> None:
        self.closed = True


def test_what_lies_within_passes_as_it_is() -> None:
    given = Given()
    bounded = BoundedEnvironment(given, out_of_bounds="error")
    assert bounded.reset() is given.columns
    assert bounded.step({}).observation is given.columns
    bounded.close()
    assert given.closed


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("observation.x", [[0.5, 0.0], [0.0, 5.5]], r"observation.x\[1\] of copy 1 is 5.5, outside of -inf to 5.0"),
        ("observation.n", [0, 3], "observation.n of copy 0 is 0, outside of 1 to 3"),
        ("observation.bits", [[0, 0], [2, 1]], r"observation.bits\[0\] of copy 1 is 2, outside of 0 to 1"),
    ],
)
def test_an_error_names_column_entry_value_and_bounds(name: str, value: Any, told: str) -> None:
    given = Given()
    given.columns[name] = np.asarray(value, given.columns[name].dtype)
    expected = f"environment 'given' in reset: {told}; set environment.out_of_bounds to clip, warn or ignore"
    with pytest.raises(EnvironmentFault, match=expected):
        BoundedEnvironment(given, out_of_bounds="error").reset()


def test_clipping_leaves_the_environments_own_array_alone() -> None:
    given = Given()
    given.columns["observation.x"] = mine = np.array([[-0.5, -9.0], [2.0, 6.0]], np.float32)
    found = BoundedEnvironment(given, out_of_bounds="clip").step({}).observation
    assert found["observation.x"].tolist() == [[0.0, -9.0], [1.0, 5.0]]
    assert found["observation.n"] is given.columns["observation.n"]
    assert mine[1, 1] == 6.0


def test_final_observations_are_looked_at_too_and_name_their_copy() -> None:
    given = Given()
    last = {name: column[1:] for name, column in given.columns.items()}
    last["observation.n"] = np.array([9])
    given.final = FinalObservations(environments=np.array([1]), observation=last)
    clipped = BoundedEnvironment(given, out_of_bounds="clip").step({}).final
    assert clipped is not None
    assert clipped.observation["observation.n"].tolist() == [3]
    with pytest.raises(EnvironmentFault, match="in step: observation.n of copy 1 is 9, outside of 1 to 3"):
        BoundedEnvironment(given, out_of_bounds="error").step({})


def test_a_warning_comes_once_for_each_column(caplog: pytest.LogCaptureFixture) -> None:
    given = Given()
    given.columns["observation.n"] = np.array([0, 9])
    bounded = BoundedEnvironment(given, out_of_bounds="warn")
    with caplog.at_level(logging.WARNING, "rollstream.envs"):
        assert bounded.reset() is given.columns
        bounded.step({})
    assert [record.getMessage() for record in caplog.records] == [
        "environment 'given' in reset: observation.n of copy 0 is 0, outside of 1 to 3; told once for each column"
    ]
