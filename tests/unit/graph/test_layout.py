"""The flat vector and its parts."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import NonFiniteError, SchemaMismatch
from rollstream.graph.initializers import Constant, Orthogonal
from rollstream.graph.layout import FlatLayout, Parameter


@pytest.fixture
def layout() -> FlatLayout:
    return FlatLayout(
        (
            Parameter(name="torso.weight", shape=(3, 2), init=Orthogonal()),
            Parameter(name="torso.bias", shape=(2,), init=Constant(value=0.5)),
        )
    )


def test_parts_lie_one_after_the_other(layout: FlatLayout) -> None:
    assert layout.names == ("torso.weight", "torso.bias")
    assert layout.shapes == ((3, 2), (2,))
    assert layout.offsets == (0, 6)
    assert layout.size == 8


def test_split_gives_views(layout: FlatLayout) -> None:
    flat = np.zeros(8, np.float32)
    layout.split(flat)["torso.bias"][:] = 7
    assert flat.tolist() == [0, 0, 0, 0, 0, 0, 7, 7]


def test_join_is_the_inverse_of_split(layout: FlatLayout) -> None:
    flat = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(layout.join(layout.split(flat)), flat)


def test_first_values_depend_on_the_seed_and_the_name_alone(layout: FlatLayout) -> None:
    np.testing.assert_array_equal(layout.init(3), layout.init(3))
    assert not np.array_equal(layout.init(3), layout.init(4))
    alone = FlatLayout(layout.parameters[:1])
    np.testing.assert_array_equal(alone.init(3), layout.init(3)[:6])


def test_the_hash_tells_other_shapes(layout: FlatLayout) -> None:
    other = FlatLayout((Parameter(name="torso.weight", shape=(2, 3), init=Orthogonal()), layout.parameters[1]))
    assert layout.hash == FlatLayout(layout.parameters).hash != other.hash
    assert len(layout.hash) == 16


def test_tensors_of_another_policy_are_refused_by_name(layout: FlatLayout) -> None:
    with pytest.raises(SchemaMismatch, match=r"tensors do not fit the policy: missing \['torso.bias'\], unknown \['head'\]"):
        layout.join({"torso.weight": np.zeros((3, 2)), "head": np.zeros(2)})
    with pytest.raises(SchemaMismatch, match=r"tensor torso.bias has shape \[3\], the policy has \[2\]"):
        layout.join({"torso.weight": np.zeros((3, 2)), "torso.bias": np.zeros(3)})


def test_a_vector_of_another_size_is_refused(layout: FlatLayout) -> None:
    with pytest.raises(SchemaMismatch, match=r"weights have shape \[9\], the policy has 8 parameters"):
        layout.split(np.zeros(9, np.float32))


def test_non_finite_weights_are_refused_by_name(layout: FlatLayout) -> None:
    flat = np.zeros(8, np.float32)
    layout.require_finite(flat)
    flat[7] = np.nan
    with pytest.raises(NonFiniteError, match=r"1 of 2 numbers of parameter torso.bias are not finite"):
        layout.require_finite(flat)
