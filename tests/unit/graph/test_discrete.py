"""Choices and the values that environments call them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rollstream.errors import SpaceError
from rollstream.graph import ActorCriticPolicy, QPolicy, declare
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.discrete import index_to_value, value_to_index
from rollstream.spaces import Leaf


def test_values_are_counted_from_the_start(discrete: Callable[..., Leaf]) -> None:
    assert index_to_value(discrete(3, start=-1), np.array([0, 1, 2])).tolist() == [-1, 0, 1]


def test_indices_are_the_inverse_of_values(discrete: Callable[..., Leaf]) -> None:
    leaf = discrete(5, start=10)
    index = np.arange(5)
    np.testing.assert_array_equal(value_to_index(NumpyOps(), leaf, index_to_value(leaf, index)), index)


def test_unsigned_values_below_the_start_do_not_wrap() -> None:
    leaf = Leaf(name="action", kind="discrete", dtype="|u1", shape=(), counts=(3,), starts=(2,))
    assert value_to_index(NumpyOps(), leaf, np.array([2, 3, 4], np.uint8)).tolist() == [0, 1, 2]


def test_zeros_that_are_no_values_count_as_the_nearest_one(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    assert value_to_index(NumpyOps(), discrete(3, start=100), np.array([0, 101, 999])).tolist() == [0, 1, 2]
    several = Leaf(name="several", kind="multi_discrete", dtype="<i8", shape=(1, 2), counts=(2, 3), starts=(-9, 70))
    assert value_to_index(NumpyOps(), several, np.array([[0, 0], [-9, 71]])).tolist() == [[1, 0], [0, 1]]
    assert "policy.bias" in declare(ActorCriticPolicy((box(),), (discrete(3, start=100),))).layout.names


def test_other_action_spaces_are_refused_with_what_they_are(box: Callable[..., Leaf]) -> None:
    several = Leaf(name="action.hands", kind="multi_discrete", dtype="<i8", shape=(2,), counts=(3, 4), starts=(0, 0))
    with pytest.raises(SpaceError, match=r"^action.hands: .* got multi_discrete \[3, 4\]; use ppo, or wrap the environment"):
        QPolicy((box(),), (several,))
    bounded = box(2, name="action")
    with pytest.raises(SpaceError, match=r"got Box \[2\] with bounds -1.0 to 1.0; use an algorithm for continuous actions"):
        QPolicy((box(),), (bounded,))
    bits = Leaf(name="action", kind="multi_binary", dtype="|i1", shape=(3,))
    with pytest.raises(SpaceError, match=r"got multi_binary \[3\]; use ppo, .*combination of bits is one value"):
        QPolicy((box(),), (bits,))
