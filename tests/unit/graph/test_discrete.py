"""Choices and the values that environments call them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rollstream.errors import SpaceError
from rollstream.graph import CategoricalPolicy, QPolicy, index_to_value, value_to_index
from rollstream.spaces import Leaf


def test_values_are_counted_from_the_start_and_keep_the_dtype_of_the_space(discrete: Callable[..., Leaf]) -> None:
    leaf = discrete(3, start=-1)
    values = index_to_value(leaf, np.array([0, 1, 2]))
    assert values.tolist() == [-1, 0, 1]
    assert values.dtype == np.int64


def test_indices_are_the_inverse_of_values(discrete: Callable[..., Leaf]) -> None:
    leaf = discrete(5, start=10)
    index = np.arange(5)
    np.testing.assert_array_equal(value_to_index(leaf, index_to_value(leaf, index)), index)


def test_unsigned_values_below_the_start_do_not_wrap() -> None:
    leaf = Leaf(name="action", kind="discrete", dtype="|u1", shape=(), counts=(3,), starts=(2,))
    assert value_to_index(leaf, np.array([2, 3, 4], np.uint8)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("policy", [CategoricalPolicy, QPolicy])
def test_an_unbounded_box_action_is_refused_with_what_to_use_instead(
    policy: Callable[..., object], box: Callable[..., Leaf]
) -> None:
    action = Leaf(name="action", kind="box", dtype="<f4", shape=(1,), low=(float("-inf"),), high=(float("inf"),))
    with pytest.raises(
        SpaceError, match=r"^action: .*Policy.act, argument action: needs a Discrete space, got Box .* no finite bounds; wrap it"
    ):
        policy((box(),), action)


def test_other_action_spaces_are_refused_with_what_they_are(box: Callable[..., Leaf]) -> None:
    several = Leaf(name="action.hands", kind="multi_discrete", dtype="<i8", shape=(2,), counts=(3, 4), starts=(0, 0))
    with pytest.raises(SpaceError, match=r"^action.hands: .* got multi_discrete \[3, 4\]; .*one value of a Discrete space"):
        CategoricalPolicy((box(),), several)
    bounded = box(2, name="action")
    with pytest.raises(SpaceError, match=r"got Box \[2\] with bounds -1.0 to 1.0"):
        CategoricalPolicy((box(),), bounded)
