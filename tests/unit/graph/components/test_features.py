"""Features of observations of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import SpaceError
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Features
from rollstream.graph.inputs import columns_of
from rollstream.graph.scope import Parameters, Scope
from rollstream.spaces import Leaf


def _features(leaves: tuple[Leaf, ...], columns: dict[str, np.ndarray]) -> np.ndarray:
    found = Features(leaves).output(Scope(NumpyOps(), Parameters(live={}, frozen={})), columns)
    assert found.dtype == np.float32
    assert found.shape[-1] == Features(leaves).width
    return np.asarray(found)


def test_a_box_of_any_shape_and_dtype_is_flattened_to_float() -> None:
    leaf = Leaf(name="observation", kind="box", dtype="|u1", shape=(2, 2), low=(0,) * 4, high=(255,) * 4)
    x = np.array([[[0, 1], [2, 255]]], np.uint8)
    assert _features((leaf,), {"observation": x}).tolist() == [[0, 1, 2, 255]]


def test_discrete_is_one_hot_counted_from_its_start() -> None:
    leaf = Leaf(name="observation", kind="discrete", dtype="<i8", shape=(), counts=(3,), starts=(-1,))
    assert _features((leaf,), {"observation": np.array([-1, 0, 1])}).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_each_number_of_a_multi_discrete_has_its_own_one_hot() -> None:
    leaf = Leaf(name="observation", kind="multi_discrete", dtype="<i8", shape=(1, 2), counts=(2, 3), starts=(0, 5))
    assert _features((leaf,), {"observation": np.array([[[1, 5]], [[0, 7]]])}).tolist() == [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]]


def test_multi_binary_is_taken_as_zeros_and_ones() -> None:
    leaf = Leaf(name="observation", kind="multi_binary", dtype="|i1", shape=(3,))
    assert _features((leaf,), {"observation": np.array([[1, 0, 1]], np.int8)}).tolist() == [[1, 0, 1]]


def test_leaves_of_a_nested_space_stand_side_by_side() -> None:
    leaves = (
        Leaf(name="observation.a", kind="box", dtype="<f8", shape=(), low=(-1,), high=(1,)),
        Leaf(name="observation.b", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),
    )
    columns = {"observation.a": np.array([0.5, -0.5]), "observation.b": np.array([1, 0])}
    assert _features(leaves, columns).tolist() == [[0.5, 0, 1], [-0.5, 1, 0]]


def test_a_mask_of_actions_is_no_feature() -> None:
    mask = Leaf(name="observation.action_mask", kind="multi_binary", dtype="|i1", shape=(3,))
    speed = Leaf(name="observation.speed", kind="box", dtype="<f4", shape=(1,), low=(-1,), high=(1,))
    columns: dict[str, np.ndarray] = {
        "observation.action_mask": np.ones((1, 3), np.int8),
        "observation.speed": np.array([[0.5]], np.float32),
    }
    assert _features((mask, speed), columns).tolist() == [[0.5]]
    with pytest.raises(SpaceError, match=r"observation: needs a leaf besides action_mask, got observation.action_mask"):
        Features((mask,))


def test_all_modes_agree() -> None:
    leaves = (
        Leaf(name="observation.a", kind="box", dtype="<f8", shape=(2, 2), low=(-1,) * 4, high=(1,) * 4),
        Leaf(name="observation.b", kind="discrete", dtype="<i8", shape=(), counts=(3,), starts=(-1,)),
        Leaf(name="observation.c", kind="multi_discrete", dtype="<i8", shape=(2,), counts=(2, 3), starts=(0, 7)),
        Leaf(name="observation.d", kind="multi_binary", dtype="|i1", shape=(3,)),
    )
    component_test(Features(leaves), {"output": {"observation": columns_of(leaves)}})
