"""What a sample's columns are: slices of an item's rows counted from its newest one, and stacks of frames.

    item's rows    -5  -4  -3  -2  -1                    (-1: the newest)
    index=-2                   x                         [B, ...]
    indices=(-5, -1)    x               x                [B, 2, ...]
    start=-3, stop=-1          x   x                     [B, 2, ...], as Python's column[-3:-1]
    start=-5, step=2    x       x       x                [B, 3, ...]

Rows are stored once; a view or a stack is made when they are read, where possible without copying.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from rollstream.config import Frozen
from rollstream.errors import ConfigError
from rollstream.spaces import length_name, present_name

__all__ = ["ColumnView", "stacked_run", "viewed"]

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
ALWAYS = ("flags", "version")


class ColumnView(Frozen):
    """One column of a sample: the rows of `column` at some places relative to the item's newest row, under `name`.

    Give one of `index`, `indices` and `start`; none of them means all rows of the item.

    >>> ColumnView(name="last_two", column="observation", start=-2).rows_needed
    2
    """

    name: str = Field(min_length=1)
    """Name of the column in samples."""
    column: str = Field(min_length=1)
    """Name of the column in the table's rows."""
    index: int | None = Field(default=None, lt=0)
    """One row: -1 is the newest. The axis of rows goes away."""
    indices: tuple[int, ...] = ()
    """Some rows, in the order given, each below 0."""
    start: int | None = Field(default=None, lt=0)
    """First row of a slice, below 0."""
    stop: int | None = Field(default=None, lt=0)
    """End of a slice, below 0 and not part of it; none: up to the newest row."""
    step: int = Field(default=1, ge=1)
    """Of a slice, every how manieth row is taken."""

    @model_validator(mode="after")
    def _one_kind(self) -> ColumnView:
        given = [kind for kind, there in self._kinds().items() if there]
        if len(given) > 1:
            raise ConfigError(f"view {self.name!r} gives {' and '.join(given)}; give one of index, indices and start")
        if self.start is None and (self.stop is not None or self.step != 1):
            raise ConfigError(f"view {self.name!r} gives stop or step without start; say where the slice starts, e.g. start=-4")
        if any(index >= 0 for index in self.indices):
            raise ConfigError(f"view {self.name!r}: indices are below 0 (-1 is the newest row), got {list(self.indices)}")
        if self.start is not None and self.stop is not None and self.stop <= self.start:
            raise ConfigError(f"view {self.name!r}: start < stop fails: {self.start} >= {self.stop}; the slice is empty")
        if self.name in ALWAYS:
            raise ConfigError(f"view {self.name!r}: flags and version are always there for all rows; choose another name")
        return self

    @property
    def places(self) -> tuple[int, ...]:
        """The rows taken, relative to one after the newest; empty: all."""
        if self.index is not None:
            return (self.index,)
        if self.start is not None:
            return tuple(range(self.start, 0 if self.stop is None else self.stop, self.step))
        return self.indices

    @property
    def rows_needed(self) -> int:
        """How many rows an item must have; 0: any number."""
        return -min(self.places, default=0)

    def _kinds(self) -> dict[str, bool]:
        return {"index": self.index is not None, "indices": bool(self.indices), "start": self.start is not None}


def viewed(columns: Arrays, views: Sequence[ColumnView], *, end: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """Columns [B, L, ...] of runs whose newest rows stand just before the columns `end` [B], as the views want them.

    Companions of ragged and optional columns follow under the view's name. Where all runs end at one column, nothing is copied but
    for `indices`.
    """
    common = int(end[0]) if len(end) and bool((end == end[0]).all()) else None
    taken = {name: columns[name] for name in ALWAYS}
    for view in views:
        for source, target in (
            (view.column, view.name),
            (length_name(view.column), length_name(view.name)),
            (present_name(view.column), present_name(view.name)),
        ):
            if source in columns:
                taken[target] = _taken(columns[source], view, end, common)
    return taken


def _taken(column: npt.NDArray[Any], view: ColumnView, end: npt.NDArray[np.int64], common: int | None) -> npt.NDArray[Any]:
    places = view.places
    if not places:
        return column
    if common is None:
        at = end[:, None] + np.asarray(places)
        gathered: npt.NDArray[Any] = column[np.arange(len(end))[:, None], at]
        return gathered[:, 0] if view.index is not None else gathered
    if view.index is not None:
        return column[:, common + view.index]
    if view.start is not None:
        return column[:, common + view.start : common + (view.stop or 0) : view.step]
    return column[:, common + np.asarray(places)]


def stacked_run(
    column: npt.NDArray[Any], *, frames: int, origin: npt.NDArray[np.int64], drop: int, clear: bool
) -> npt.NDArray[Any]:
    """Stacks of the last `frames` rows, [B, L, ...] -> [B, L - drop, frames, ...]; the newest frame is the last of a stack.

    Args:
        origin: [B, L], the first column of the episode (or of the item) that each row belongs to: frames before it repeat it.
        drop: columns on the left that only complete stacks, at least frames - 1.
        clear: whether no run has a boundary inside; then cells left of a run are filled and the result is a view of `column`.
    """
    if not len(column):
        return np.zeros((0, column.shape[1] - drop, frames, *column.shape[2:]), column.dtype)
    if not clear:
        length = column.shape[1]
        at = np.arange(drop, length)[:, None] + np.arange(1 - frames, 1)
        source = np.maximum(at[None], origin[:, drop:, None])
        return np.asarray(column[np.arange(len(column))[:, None, None], source])
    before = np.arange(column.shape[1]) < origin[:, -1:]
    if before.any():
        item, place = np.nonzero(before)
        column[item, place] = column[item, origin[item, -1]]
    windows = np.lib.stride_tricks.sliding_window_view(column, frames, axis=1, writeable=True)[:, drop - frames + 1 :]
    return np.moveaxis(windows, -1, 2)
