"""Batches of values to columns and back, and every way in which a value may not fit its space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from rollstream.errors import EnvironmentFault
from rollstream.spaces import SpaceLayout, flatten, unflatten

NESTED = spaces.Dict(
    {
        "a": spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float64), "y": spaces.Discrete(5, start=-2)}),
        "b": spaces.Tuple((spaces.Box(0, 255, (2, 3), np.uint8), spaces.MultiBinary(3))),
        "c": spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])),
    }
)
IMAGE = spaces.Box(0, 255, (60, 80), np.uint8)
KEYED = spaces.Dict({"k": spaces.Discrete(2)})
PAIR = spaces.Tuple((spaces.Discrete(3), spaces.Discrete(4)))


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    return bool(np.array_equal(left, right))


def test_a_nested_batch_comes_back_as_it_went() -> None:
    value = batch_space(NESTED, 4).sample()
    columns = flatten(NESTED, "observation", value, batch=4)
    assert list(columns) == ["observation.a.x", "observation.a.y", "observation.b.0", "observation.b.1", "observation.c"]
    assert {len(column) for column in columns.values()} == {4}
    assert equal(unflatten(NESTED, "observation", columns), value)


def test_arrays_that_fit_are_passed_on_without_a_copy() -> None:
    value = np.zeros((4, 3), np.float32)
    assert flatten(spaces.Box(-1, 1, (3,)), "observation", value, batch=4)["observation"] is value


def test_one_dictionary_for_each_copy_gives_the_same_columns() -> None:
    each = [NESTED.sample() for _ in range(4)]
    layout = SpaceLayout(NESTED, "observation")
    nested = layout.write(layout.read_each(each))
    for value in (tuple(each), each, np.array([*each, None], object)[:4]):
        assert equal(layout.write(layout.read(value, batch=4)), nested)
    for index in range(4):
        assert equal(layout.write_one(layout.read_each(each), index), each[index])


def test_tuples_are_read_in_both_layouts_even_when_their_width_is_the_batch() -> None:
    arrays = (np.array([0, 1]), np.array([2, 3]))
    assert flatten(PAIR, "action", arrays, batch=2)["action.1"].tolist() == [2, 3]
    assert flatten(PAIR, "action", ((0, 2), (1, 3)), batch=2)["action.1"].tolist() == [2, 3]
    nested = spaces.Tuple((PAIR, PAIR))
    columns = flatten(nested, "action", (arrays, arrays), batch=2)
    assert columns["action.0.1"].tolist() == [2, 3]
    each = SpaceLayout(nested, "action").read_each([((0, 1), (2, 3)), ((1, 2), (0, 0))])
    assert each["action.0.1"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("space", "value", "dtype"),
    [
        (spaces.Box(-1, 1, (2,), np.float64), np.ones((3, 2), np.float32), np.float64),
        (spaces.Box(-1, 1, (2,), np.float32), np.ones((3, 2), np.float64), np.float32),
        (spaces.Box(-1, 1, (2,), np.float32), np.ones((3, 2), np.int64), np.float32),
        (spaces.Box(0, 255, (2,), np.uint8), np.full((3, 2), 255, np.int64), np.uint8),
        (spaces.Discrete(3), [0, 1, 2], np.int64),
        (spaces.Discrete(3), np.array([0, 1, 2], np.int32), np.int64),
        (spaces.MultiBinary(2), np.ones((3, 2), np.bool_), np.int8),
    ],
)
def test_a_value_of_another_dtype_is_cast_when_it_fits(space: spaces.Space[Any], value: Any, dtype: Any) -> None:
    column = flatten(space, "observation", value, batch=3)["observation"]
    assert column.dtype == dtype
    assert np.array_equal(column, value)


def test_values_out_of_bounds_are_tolerated() -> None:
    value = np.full((3, 2), 1.0 + 1e-7, np.float64)
    assert (flatten(spaces.Box(-1, 1, (2,), np.float64), "observation", value, batch=3)["observation"] > 1).all()


def test_wide_integers_keep_every_digit() -> None:
    value = np.array([[2**53 + 1], [2**62 + 1]], np.int64)
    column = flatten(spaces.Box(0, 2**62 + 1, (1,), np.int64), "observation", value, batch=2)["observation"]
    assert column.tolist() == value.tolist()


@pytest.mark.parametrize(
    ("space", "value", "message"),
    [
        (spaces.Box(0, 255, (160,), np.uint8), np.zeros((1, 160), np.uint8), r"^o: expected 3 x uint8\[160\], got .* \[1, 160\]"),
        (IMAGE, np.zeros((3, 80, 60), np.uint8), r"expected 3 x uint8\[60, 80\], got .* \[3, 80, 60\]"),
        (spaces.Discrete(3), np.zeros((3, 1), np.int64), r"expected 3 x int64\[\], got an array of shape \[3, 1\]"),
        (spaces.Discrete(3), np.int64(1), r"expected 3 x int64\[\], got an array of shape \[\]"),
        (spaces.Box(0, 255, (2,), np.uint8), np.full((3, 2), 256), "expected numbers of uint8, got int64 that do not fit"),
        (spaces.Box(0, 255, (2,), np.uint8), np.full((3, 2), 0.5), "expected numbers of uint8, got float64"),
        (spaces.Box(0, 1, (2,)), np.full((3, 2), None), "expected numbers of float32, got object"),
        (spaces.Box(0, 1, (2,)), [[0, 1], [0, 1, 2], [0, 1]], r"expected entries of shape \(2,\), got shapes \[\(2,\), "),
        (KEYED, {"j": np.zeros(3)}, r"^o: the key 'k' of its Dict space is missing, got keys \['j'\]"),
        (KEYED, [{"j": 1}] * 3, r"the key 'k' of its Dict space is missing"),
        (KEYED, [{"k": 1}] * 2, "expected a dictionary of arrays or 3 dictionaries, got list of length 2"),
        (KEYED, 5, "expected a dictionary of arrays or 3 dictionaries, got int"),
        (PAIR, (np.zeros(3, int),), "expected a tuple of 2 arrays or 3 tuples of 2, got tuple of length 1"),
        (PAIR, 5, "expected a tuple of 2 arrays or 3 tuples of 2, got int"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_names_key_expected_and_got(space: spaces.Space[Any], value: Any, message: str) -> None:
    with pytest.raises(EnvironmentFault, match=message):
        flatten(space, "o", value, batch=3)
