"""From [-1, 1] to the bounds of a Box and back."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from rollstream.errors import SpaceError
from rollstream.graph import ActorCriticPolicy
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.policies.heads import Bounds
from rollstream.spaces import Leaf, leaves

OPS = NumpyOps()


def box(low: object, high: object, dtype: type = np.float32) -> Leaf:
    (leaf,) = leaves(gymnasium.spaces.Box(np.asarray(low, dtype), np.asarray(high, dtype), dtype=dtype), "action")
    return leaf


def test_the_map_is_linear_and_back() -> None:
    scale = Bounds(box([[-2.0, 0.0]], [[4.0, 10.0]]))
    unit = np.array([[-1.0, 1.0], [0.0, 0.5]], np.float32)
    value = scale.to_environment(OPS, unit)
    assert value.tolist() == [[[-2.0, 10.0]], [[1.0, 7.5]]]
    np.testing.assert_allclose(scale.from_environment(OPS, value), unit, atol=1e-6)


def test_integers_get_equal_shares() -> None:
    scale = Bounds(box([2], [5], np.int8))
    unit = np.linspace(-1, 1, 4_001, dtype=np.float32)[:, None]
    found, counts = np.unique(scale.to_environment(OPS, unit), return_counts=True)
    assert found.tolist() == [2, 3, 4, 5]
    np.testing.assert_allclose(counts, 1_000, atol=2)


def test_the_widest_bounds_stay_finite() -> None:
    most = float(np.finfo(np.float32).max)
    value = Bounds(box([-most], [most])).to_environment(OPS, np.array([[-1.0], [0.0], [1.0]], np.float32))
    assert value.tolist() == [[-most], [0.0], [most]]


def test_an_entry_that_cannot_vary_is_zero_on_the_way_back() -> None:
    assert Bounds(box([3.0], [3.0])).from_environment(OPS, np.full((1, 1), 3.0, np.float32)).tolist() == [[0.0]]


def test_integers_beyond_float32_are_refused() -> None:
    observation = (box([-1.0], [1.0]),)
    with pytest.raises(SpaceError, match=r"action: an integer Box action must stay within -16777216 to 16777216, got low 0"):
        ActorCriticPolicy(observation, (box([0], [1 << 40], np.int64),))


def test_integers_without_bounds_are_refused() -> None:
    leaf = Leaf(name="action", kind="box", dtype="<i8", shape=(1,), low=(-np.inf,), high=(np.inf,))
    with pytest.raises(SpaceError, match="action: an integer Box action needs bounds; give them, e.g. in a wrapper"):
        ActorCriticPolicy((box([-1.0], [1.0]),), (leaf,))
