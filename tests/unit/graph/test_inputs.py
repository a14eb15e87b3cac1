"""What APIs take."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.graph.inputs import Input, bind, columns_of, fill, flat_inputs, sample
from rollstream.spaces import Leaf


def test_columns_of_the_next_observation_are_bound_under_the_names_of_the_observation(box: Callable[..., Leaf]) -> None:
    leaves = (box(name="observation.camera"),)
    arguments = {"next_observation": columns_of(leaves, prefix="next_"), "reward": Input(name="reward")}
    assert [item.name for item in flat_inputs(arguments)] == ["next_observation.camera", "reward"]
    bound = bind(arguments, {"next_observation.camera": 1, "reward": 2})
    assert bound == {"next_observation": {"observation.camera": 1}, "reward": 2}


def test_examples_lie_in_the_space(discrete: Callable[..., Leaf], generator: np.random.Generator) -> None:
    arguments = {"observation": columns_of((discrete(3, start=-1, name="observation"),))}
    drawn = sample(arguments, rows=100, generator=generator)["observation"]
    assert set(drawn.tolist()) == {-1, 0, 1}
    assert drawn.dtype == np.int64


def test_numbers_without_a_choice_in_common_are_drawn_from_all_of_them(generator: np.random.Generator) -> None:
    cards = Leaf(name="observation", kind="multi_discrete", dtype="<i8", shape=(2,), counts=(2, 3), starts=(0, 7))
    drawn = sample({"observation": columns_of((cards,))}, rows=500, generator=generator)["observation"]
    assert set(drawn.ravel().tolist()) == set(range(10))


def test_a_column_is_converted_to_the_declared_dtype_when_nothing_but_precision_is_lost() -> None:
    buffer = np.zeros(2, np.float32)
    fill(buffer, np.array([0.5, 1.5]), name="reward", where="update")
    assert buffer.tolist() == [0.5, 1.5]


def test_a_column_of_another_shape_or_kind_is_refused_by_name() -> None:
    with pytest.raises(SchemaMismatch, match=r"update: column reward has shape \[3\], built for \[2\]"):
        fill(np.zeros(2, np.float32), np.zeros(3), name="reward", where="update")
    with pytest.raises(SchemaMismatch, match=r"update: column action is float64, which does not convert to int64"):
        fill(np.zeros(2, np.int64), np.zeros(2), name="action", where="update")
