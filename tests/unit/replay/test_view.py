"""Views: what is accepted, and which rows they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.config import Frozen, load
from rollstream.errors import ConfigError
from rollstream.replay.spec import TableSpec
from rollstream.replay.view import ColumnView, stacked_run, viewed


class Spec(Frozen):
    view: tuple[ColumnView, ...] = ()


def view(**fields: Any) -> ColumnView:
    return ColumnView(name="x", column="observation", **fields)


@pytest.mark.parametrize(
    ("fields", "places"),
    [
        ({"index": -2}, (-2,)),
        ({"indices": (-1, -4)}, (-1, -4)),
        ({"start": -3}, (-3, -2, -1)),
        ({"start": -4, "stop": -1, "step": 2}, (-4, -2)),
        ({}, ()),
    ],
)
def test_places_are_those_of_python_slices(fields: dict[str, Any], places: tuple[int, ...]) -> None:
    made = view(**fields)
    assert made.places == places
    assert made.rows_needed == -min(places, default=0)
    assert ColumnView.model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"index": -1, "start": -2}, "view 'x' gives index and start; give one of index, indices and start"),
        ({"indices": [-1], "index": -1}, "view 'x' gives index and indices"),
        ({"stop": -1}, "gives stop or step without start; say where the slice starts"),
        ({"step": 2}, "gives stop or step without start"),
        ({"indices": [-1, 0]}, r"indices are below 0 \(-1 is the newest row\), got \[-1, 0\]"),
        ({"start": -2, "stop": -2}, "start < stop fails: -2 >= -2; the slice is empty"),
        ({"index": 0}, "view.0.index: Input should be less than 0, got 0"),
        ({"start": -2, "step": 0}, "view.0.step: Input should be greater than or equal to 1"),
        ({"name": "flags"}, "flags and version are always there for all rows; choose another name"),
    ],
)
def test_a_view_that_says_two_things_or_nothing_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(Spec, {"view": [{"name": "x", "column": "observation", **fields}]}, what="table spec")


def test_an_index_takes_the_axis_of_rows_away() -> None:
    columns = {name: np.arange(20).reshape(2, 5, 2) for name in ("flags", "version", "observation")}
    for end in (np.array([5, 5]), np.array([4, 5])):
        taken = viewed(columns, [view(index=-1)], end=end)
        assert taken["x"].tolist() == [columns["observation"][k, end[k] - 1].tolist() for k in range(2)]


def test_stacks_of_runs_without_a_boundary_copy_nothing() -> None:
    column = np.arange(12, dtype=np.int64).reshape(2, 6)
    origin = np.array([[0] * 6, [2] * 6])  # the second run begins at column 2
    expected = stacked_run(column.copy(), frames=3, origin=origin, drop=2, clear=False)
    stacks = stacked_run(column, frames=3, origin=origin, drop=2, clear=True)
    assert np.shares_memory(stacks, column)
    assert stacks.flags.writeable
    assert stacks.tolist() == expected.tolist()
    assert stacks[0].tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert stacks[1, :2].tolist() == [[8, 8, 8], [8, 8, 9]]


def test_two_views_of_one_name_are_refused() -> None:
    rows = (("observation", "<f4", ()),)
    with pytest.raises(ConfigError, match="two views have the name 'x', of which samples could show only one"):
        TableSpec(name="t", max_items=1, rows=rows, view=(view(index=-1), view(index=-2)))
    assert TableSpec(name="t", max_items=1, rows=rows, view=(view(index=-1),)).view
