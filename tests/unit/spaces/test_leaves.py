"""Spaces to leaves: names, dtypes, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import SpaceError
from rollstream.spaces import leaves
from rollstream.spaces.leaves import stored_dtype


def test_nested_spaces_become_dotted_names_in_order() -> None:
    space = spaces.Dict(
        {
            "b": spaces.Tuple((spaces.Box(0, 255, (2, 3), np.uint8), spaces.MultiBinary(3))),
            "a": spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float64), "y": spaces.Discrete(5, start=-2)}),
        },
        sort_keys=False,
    )
    found = leaves(space, "observation")
    assert [(leaf.name, leaf.kind, leaf.dtype, leaf.shape) for leaf in found] == [
        ("observation.b.0", "box", "|u1", (2, 3)),
        ("observation.b.1", "multi_binary", "|i1", (3,)),
        ("observation.a.x", "box", "<f8", (2,)),
        ("observation.a.y", "discrete", "<i8", ()),
    ]
    assert (found[3].counts, found[3].starts) == ((5,), (-2,))


def test_a_plain_space_keeps_the_name_alone() -> None:
    (leaf,) = leaves(spaces.Box(-2.0, 3.0, (2,), np.float32), "action")
    assert (leaf.name, leaf.low, leaf.high, leaf.size, leaf.features) == ("action", (-2.0, -2.0), (3.0, 3.0), 2, 2)


def test_multi_discrete_of_two_axes_keeps_shape_counts_and_starts() -> None:
    (leaf,) = leaves(spaces.MultiDiscrete(np.array([[2, 3], [4, 5]]), start=np.array([[0, 1], [-1, 2]])), "action")
    assert leaf.shape == (2, 2)
    assert leaf.counts == (2, 3, 4, 5)
    assert leaf.starts == (0, 1, -1, 2)
    assert leaf.features == 14


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, np.uint8, np.int8, np.int16, np.uint32, np.int64, np.bool_]
)
def test_a_box_keeps_its_dtype(dtype: Any) -> None:
    (leaf,) = leaves(spaces.Box(0, 1, (2,), dtype), "observation")
    assert np.dtype(leaf.dtype) == np.dtype(dtype)


class Shelf(spaces.Space[Any]):
    """A space of the user's own."""


@pytest.mark.parametrize(
    ("space", "advice"),
    [
        (spaces.Text(5), "Text space cannot be stored in rows of fixed size; encode it in a wrapper as a Box"),
        (spaces.Sequence(spaces.Discrete(2)), "Sequence space .*; pad it in a wrapper"),
        (spaces.Graph(spaces.Discrete(2), None), "Graph space .*; encode it in a wrapper as a Dict of Boxes"),
        (spaces.OneOf((spaces.Discrete(2),)), "OneOf space .*; encode it in a wrapper as a Dict"),
        (Shelf(), "Shelf space .*; turn it in a wrapper into Box"),
    ],
)
def test_a_space_of_varying_size_is_refused_with_its_path_and_what_to_do(space: Any, advice: str) -> None:
    nested = spaces.Dict({"arm": spaces.Tuple((spaces.Discrete(2), space))})
    with pytest.raises(SpaceError, match=rf"^observation\.arm\.1: a {advice}"):
        leaves(nested, "observation")


def test_a_dtype_without_fixed_bytes_is_refused() -> None:
    with pytest.raises(SpaceError, match=r"^observation: dtype complex64 cannot be stored; use bool, an integer"):
        stored_dtype(np.complex64, "observation")


def test_a_key_with_a_dot_is_refused_because_names_would_be_ambiguous() -> None:
    with pytest.raises(SpaceError, match=r"^observation: the Dict key 'a\.b' cannot name a column"):
        leaves(spaces.Dict({"a.b": spaces.Discrete(2)}), "observation")


def test_a_space_without_values_is_refused() -> None:
    with pytest.raises(SpaceError, match=r"^observation: the space .* holds no values"):
        leaves(spaces.Dict({}), "observation")


def test_the_packages_load_without_gymnasium() -> None:
    code = "import sys, rollstream.spaces, rollstream.envs; sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
