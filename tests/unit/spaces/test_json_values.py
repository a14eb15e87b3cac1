"""Values of spaces as JSON, by leaves alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import ConfigError
from rollstream.spaces import columns_from_json, flatten, json_from_columns, leaves

NESTED = spaces.Dict(
    {
        "camera": spaces.Box(0, 255, (2, 2, 1), np.uint8),
        "arm": spaces.Tuple([spaces.Box(-1.0, 1.0, (2,), np.float32), spaces.Discrete(3, start=-1)]),
        "flags": spaces.MultiBinary(2),
        "modes": spaces.MultiDiscrete([2, 3]),
    }
)
VALUE: dict[str, Any] = {
    "camera": [[[0], [255]], [[7], [8]]],
    "arm": [[0.5, -0.25], -1],
    "flags": [1, 0],
    "modes": [1, 2],
}


def _problems(space: Any, value: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        columns_from_json(leaves(space, "observation"), "observation", {"observation": value})
    return {problem.path: problem.message for problem in caught.value.problems}


def test_a_nested_value_becomes_the_columns_of_its_space() -> None:
    found = columns_from_json(leaves(NESTED, "observation"), "observation", {"a": VALUE, "b": VALUE})
    value = {
        "camera": np.array(VALUE["camera"], np.uint8),
        "arm": (np.array([0.5, -0.25], np.float32), np.int64(-1)),
        "flags": np.array([1, 0], np.int8),
        "modes": np.array([1, 2]),
    }
    expected = flatten(NESTED, "observation", (value, value), batch=2)
    assert found.keys() == expected.keys()
    for name, column in expected.items():
        assert found[name].dtype == column.dtype
        np.testing.assert_array_equal(found[name], column)


def test_columns_become_the_value_that_they_came_from() -> None:
    leaf = leaves(NESTED, "action")
    columns = columns_from_json(leaf, "action", {"a": VALUE})
    assert json_from_columns(leaf, "action", {**columns, "value": np.zeros(1)}) == [VALUE]


def test_a_single_space_needs_no_nesting() -> None:
    leaf = leaves(spaces.Discrete(2), "action")
    columns = columns_from_json(leaf, "action", {"a": 1, "b": 0})
    assert json_from_columns(leaf, "action", columns) == [1, 0]


def test_a_tuple_may_be_an_object_of_its_indices() -> None:
    leaf = leaves(spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]), "action")
    assert json_from_columns(leaf, "action", columns_from_json(leaf, "action", {"a": {"0": 1, "1": 0}})) == [[1, 0]]


def test_everything_that_is_wrong_is_told_at_once_with_its_path() -> None:
    wrong = {
        "camera": [[[0], [256]], [[7], [8]]],
        "arm": [[0.5, None], 2],
        "flags": [1],
        "wheels": 4,
    }
    assert _problems(NESTED, wrong) == {
        "observation.modes": "is missing",
        "observation.wheels": "is not part of it; known: arm, camera, flags, modes",
        "observation.camera.0.1.0": "must be a whole number that fits uint8, got 256",
        "observation.arm.0.1": "must be a number or lists of them, got null",
        "observation.arm.1": "must be one of the choices -1 to 1, got 2",
        "observation.flags": "must have shape [2], got [1]",
    }


@pytest.mark.parametrize(
    ("space", "value", "message"),
    [
        (spaces.Dict({"a": spaces.Discrete(2)}), [1], "must be an object with a, got a list"),
        (spaces.Tuple([spaces.Discrete(2)]), "1", "must be a list of 1 parts, got text"),
        (spaces.Tuple([spaces.Discrete(2)]), [1, 1], "must be a list of 1 parts, got 2"),
        (spaces.Discrete(2), 0.5, "must be a whole number that fits int64, got 0.5"),
        (spaces.Discrete(2), [0], "must have shape of one number, got [1]"),
        (spaces.MultiBinary(()), 2, "must be 0 or 1, got 2"),
        (spaces.Box(0, 1, (2, 2)), [[1, 2], [3]], "has lists of different lengths side by side"),
        (spaces.Box(0, 1, (1,)), [10**400], "has numbers with more digits than 64 bits hold"),
    ],
)
def test_a_value_of_another_form_is_refused(space: Any, value: Any, message: str) -> None:
    assert _problems(space, value) == {"observation": message}


def test_a_number_that_is_not_finite_is_refused() -> None:
    assert _problems(spaces.Box(0, 1, (2,)), [0.5, float("inf")]) == {"observation.1": "must be finite, got inf"}


def test_a_long_list_of_problems_is_cut() -> None:
    leaf = leaves(spaces.Discrete(2), "observation")
    with pytest.raises(ConfigError, match="observation has 60 bad field") as caught:
        columns_from_json(leaf, "observation", {str(index): 5 for index in range(60)})
    assert len(caught.value.problems) == 50
