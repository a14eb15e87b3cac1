"""Recorded transitions as rows of a table: the same rows that an actor would have written.

    M transitions, columns [M, ...]                 rows
    obs0 act0 rew0                                  obs0 act0 rew0  FIRST
    obs1 act1 rew1  terminated   next_obs2   ──▶    obs1 act1 rew1
                                                    obs2            FINAL TERMINATED

A recording that ends an episode without saying what was observed then cannot be bootstrapped from: its last transition gives its
observation as the final one and is itself left out. A terminated episode needs no final observation: nothing follows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.spaces import Column, Flag, RowSpec

__all__ = ["OfflineRows", "Transitions", "rows_of"]

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """What was recorded.

    Attributes:
        source: the file, for messages.
        columns: arrays [M, ...]: observations, actions, reward and whatever else.
        following: of some columns, the value after each transition [M, ...]; used where an episode ends.
        terminated, truncated: [M], after which transition an episode ended, and how.
        starts: indices [E] of the first transition of each episode, for recordings that say it so.
    """

    source: str
    columns: Mapping[str, Array]
    following: Mapping[str, Array] = field(default_factory=dict)
    terminated: Bools | None = None
    truncated: Bools | None = None
    starts: Ints | None = None

    @property
    def count(self) -> int:
        """M."""
        return len(next(iter(self.columns.values()))) if self.columns else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineRows:
    """Rows in time order, episode after episode.

    Attributes:
        source: where they come from, for messages.
        row_spec: their columns.
        rows: structured array [R].
        episodic: whether the recording knows of episodes; otherwise each row stands for itself.
    """

    source: str
    row_spec: RowSpec
    rows: npt.NDArray[np.void]
    episodic: bool

    @property
    def episodes(self) -> int:
        """Episodes that begin in it."""
        return int(np.count_nonzero(self.rows["flags"] & Flag.FIRST))

    @property
    def bytes(self) -> int:
        """Size of all rows."""
        return self.rows.nbytes

    def fitted(self, row_spec: RowSpec) -> OfflineRows:
        """The same rows with the columns of `row_spec`, in its order; numbers are cast where that loses at most precision.

        Raises:
            SchemaMismatch: a column is missing, is too many, has another shape or holds other numbers.
        """
        if row_spec.columns == self.row_spec.columns:
            return self
        mine, wanted = ({column.name: column for column in spec.columns} for spec in (self.row_spec, row_spec))
        if missing := [name for name in wanted if name not in mine]:
            raise SchemaMismatch(
                f"{self.source} lacks the column {missing[0]!r} of the table; it has: {', '.join(mine)} (rename one to it)"
            )
        if extra := [name for name in mine if name not in wanted]:
            raise SchemaMismatch(
                f"{self.source} has the column {extra[0]!r} which the table has not; it has: {', '.join(wanted)} (drop it)"
            )
        rows = np.empty(len(self.rows), row_spec.dtype)
        rows["flags"], rows["version"] = self.rows["flags"], self.rows["version"]
        for name, column in wanted.items():
            rows[name] = cast(self.rows[name], column, source=self.source)
        return replace(self, row_spec=row_spec, rows=rows)


def rows_of(recorded: Transitions, *, float32: bool = False) -> OfflineRows:
    """Rows of what was recorded.

    Args:
        float32: store columns of float64 as float32.

    Raises:
        ConfigError: an array does not fit to the others; the message has its name.
    """
    count = _checked(recorded)
    spec = RowSpec(tuple(_column(name, array, recorded, float32=float32) for name, array in recorded.columns.items()))
    flags = np.zeros(count, np.uint8)
    terminated = np.zeros(count, np.bool_) if recorded.terminated is None else recorded.terminated.astype(np.bool_)
    truncated = np.zeros(count, np.bool_) if recorded.truncated is None else recorded.truncated.astype(np.bool_)
    episodic = any(part is not None for part in (recorded.terminated, recorded.truncated, recorded.starts))
    first = np.zeros(count, np.bool_)
    first[:1] = True
    if episodic:
        if recorded.starts is not None:
            first[recorded.starts] = True
        first[1:] |= (terminated | truncated)[:-1]
        last = np.append(first[1:], True)[:count]
        truncated = last & ~terminated
    flags[first] = Flag.FIRST
    ends = terminated | (truncated if recorded.following else np.zeros(count, np.bool_))
    place = np.arange(count) + np.cumsum(ends) - ends
    rows = np.zeros(count + int(ends.sum()), spec.dtype)
    rows["flags"][place] = flags
    final = place[ends] + 1
    rows["flags"][final] = np.where(terminated[ends], Flag.FINAL | Flag.TERMINATED, Flag.FINAL | Flag.TRUNCATED)
    if not recorded.following:
        rows["flags"][place[truncated]] |= np.uint8(Flag.FINAL | Flag.TRUNCATED)
    for column in spec.columns:
        rows[column.name][place] = cast(recorded.columns[column.name], column, source=recorded.source)
        if column.name in recorded.following:
            rows[column.name][final] = cast(recorded.following[column.name][ends], column, source=recorded.source)
    return OfflineRows(source=recorded.source, row_spec=spec, rows=rows, episodic=episodic)


def cast(array: Array, column: Column, *, source: str) -> Array:
    """`array` [K, ...] with the dtype of `column`.

    Raises:
        SchemaMismatch: it has another shape, or holds numbers that would not survive.
    """
    if array.shape[1:] != column.shape:
        raise SchemaMismatch(
            f"{source}: column {column.name!r} has rows of shape {list(array.shape[1:])} where {list(column.shape)} is expected"
        )
    wanted = np.dtype(column.dtype)
    if array.dtype == wanted:
        return array
    if np.can_cast(array.dtype, wanted, "same_kind"):
        return array.astype(wanted)
    if array.dtype.kind in "biu" and wanted.kind in "biu":
        narrow = array.astype(wanted)
        if np.array_equal(narrow, array):
            return narrow
    raise SchemaMismatch(
        f"{source}: column {column.name!r} holds {array.dtype}, which {wanted} of the table cannot hold without loss; convert it"
    )


def _checked(recorded: Transitions) -> int:
    """M; refuses arrays of another length, by name."""
    if not recorded.columns:
        raise ConfigError(f"{recorded.source} has no column to store; it needs at least one array [M, ...]")
    first, count = next(iter(recorded.columns)), recorded.count
    marks = {"terminated": recorded.terminated, "truncated": recorded.truncated}
    following = {f"next_{name}": array for name, array in recorded.following.items()}
    arrays = {**recorded.columns, **following, **{name: array for name, array in marks.items() if array is not None}}
    for name, array in arrays.items():
        if array.ndim == 0 or len(array) != count:
            raise ConfigError(
                f"{recorded.source}: {name!r} has the shape {list(array.shape)} where {first!r} has {count} rows; all columns "
                "need as many"
            )
    for name in marks:
        if name in arrays and arrays[name].ndim != 1:
            raise ConfigError(f"{recorded.source}: {name!r} must be one number a row, got the shape {list(arrays[name].shape)}")
    starts = recorded.starts
    if starts is not None and len(starts) and (np.any(np.diff(starts) <= 0) or starts[0] < 0 or starts[-1] >= count):
        raise ConfigError(
            f"{recorded.source}: starts of episodes must rise within 0..{count - 1}, got {starts[0]}..{starts[-1]} "
            f"({len(starts)} of them)"
        )
    return count


def _column(name: str, array: Array, recorded: Transitions, *, float32: bool) -> Column:
    dtype = array.dtype.newbyteorder("<")
    if dtype.hasobject:
        raise ConfigError(f"{recorded.source}: column {name!r} holds Python objects, which no table can; make numbers of them")
    if name == "reward" or (float32 and dtype == np.dtype("<f8")):
        dtype = np.dtype("<f4")
    return Column(name=name, dtype=dtype.str, shape=array.shape[1:])
