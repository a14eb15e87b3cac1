"""A batch while its rows arrive: cells [B, L] for every column, all cores aligned; then mask, stacks and views.

             left = longest lead
item 0       .  l  l | c  c  c  .  .
item 1       l  l  l | c  c  c  c  c        L = left + longest core
item 2       .  .  . | c  .  .  .  .        '.' flags PAD, zero in all other columns
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch
from rollstream.replay.ranges import concatenated_ranges
from rollstream.replay.spec import TableSpec
from rollstream.replay.view import ALWAYS, stacked_run, viewed
from rollstream.spaces import Flag, length_name, present_name
from rollstream.spaces.opaque import opaque

__all__ = ["FetchedRows", "RunBatch", "RunLayout", "cells"]

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRows:
    """Rows of B items.

    Attributes:
        rows: arrays [B, L, ...] by column, always with `flags` and `version`; under a view its columns, [B, ...] or [B, k, ...].
        mask: [B, L], where a row is; PAD is flagged elsewhere.
        missing: [B], items of which a row is gone; their rows mean nothing.
        lengths, lead: i4 [B], rows of each item and how many of them stand before its core. Where the table stacks frames, rows that
            only complete stacks are not counted.
    """

    rows: Mapping[str, npt.NDArray[Any]]
    mask: Bools
    missing: Bools
    lengths: npt.NDArray[np.int32]
    lead: npt.NDArray[np.int32]


class RunLayout:
    """What batches of a table are made of, worked out once.

    Attributes:
        columns: those that samples are made of, as (name, dtype, shape): with views only the ones looked at, and their companions.
        dropped: columns on the left of a batch that only complete stacks.
    """

    def __init__(self, spec: TableSpec) -> None:
        self.stack = spec.stack
        self.view = spec.view
        self.dropped = max(spec.stack.values(), default=1) - 1
        wanted = {*ALWAYS}
        for view in spec.view:
            wanted |= {view.column, length_name(view.column), present_name(view.column)}
        self.columns = [
            (name, dtype.base, dtype.shape)
            for name, (dtype, *_) in (spec.row_spec.dtype.fields or {}).items()
            if name in wanted or not spec.view
        ]


def cells(column: npt.NDArray[Any], *shape: int) -> npt.NDArray[np.void]:
    """A contiguous column [*shape, ...] as opaque cells [*shape]: copying one is a single move of its bytes."""
    if not column.size:
        return np.zeros(shape, opaque(1))
    size = column.nbytes // math.prod(shape)
    viewed: npt.NDArray[np.void] = column.reshape(*shape, -1).view(opaque(size))[..., 0]
    return viewed


class RunBatch:
    """Room for the rows of items with `length` and `lead` [B]; `full` when every cell will be filled.

    Attributes:
        left: columns before the cores.
        length: L.
        columns: by name, [B, L, ...].
        missing: [B], items of which a row is gone.
    """

    def __init__(self, layout: RunLayout, *, length: Ints, lead: Ints) -> None:
        self._layout = layout
        self._lengths, self._lead = length, lead
        self.left = max(int(lead.max(initial=0)), layout.dropped)
        self.length = self.left + int((length - lead).max(initial=0))
        self.full = bool((length == self.length).all())
        self.missing = np.zeros(len(length), np.bool_)
        make = np.empty if self.full else np.zeros
        self.columns: dict[str, npt.NDArray[Any]] = {
            name: make((len(length), self.length, *shape), dtype) for name, dtype, shape in layout.columns
        }

    def cells(self, name: str) -> npt.NDArray[np.void]:
        """A column as opaque cells [B, L] over the same memory."""
        return cells(self.columns[name], len(self._lengths), self.length)

    def put(self, rows: npt.NDArray[np.void]) -> None:
        """Fill in the rows [R] of all items, item after item, of the table's row dtype."""
        cell = concatenated_ranges(np.arange(len(self._lengths)) * self.length + self.left - self._lead, self._lengths)
        for name, column in self.columns.items():
            column.reshape(-1, *column.shape[2:])[cell] = rows[name]

    def finished(self, *, what: str) -> FetchedRows:
        """What was read, with padding flagged, stacks and views made; `what` is how errors call the table."""
        begin, end = self.left - self._lead, self.left + self._lengths - self._lead
        columns, lead, lengths = self.columns, self._lead, self._lengths
        if self.full:
            mask = np.ones((len(lengths), self.length), np.bool_)
        else:
            number = np.arange(self.length)
            mask = (number >= begin[:, None]) & (number < end[:, None])
            columns["flags"][~mask] = Flag.PAD
        if self._layout.stack:
            columns, mask = self._stacked(mask, begin, what)
            lead = np.minimum(lead, self.left - self._layout.dropped)
            lengths = lengths - (self._lead - lead)
            end = end - self._layout.dropped
        if self._layout.view:
            self._require_rows(lengths, what)
            columns = viewed(columns, self._layout.view, end=end)
        return FetchedRows(
            rows=columns, mask=mask, missing=self.missing, lengths=lengths.astype(np.int32), lead=lead.astype(np.int32)
        )

    def _stacked(self, mask: Bools, begin: Ints, what: str) -> tuple[dict[str, npt.NDArray[Any]], Bools]:
        first = ((self.columns["flags"] & Flag.FIRST) != 0) & mask
        number = np.arange(self.length)
        if len(begin):
            self._require_lead(first[np.arange(len(begin)), begin], what)
        inner = first & (number > begin[:, None])
        origin = np.maximum.accumulate(np.where(inner, number, begin[:, None]), axis=1)
        clear = not inner.any()
        stacked = {}
        for name, column in self.columns.items():
            frames = self._layout.stack.get(name)
            if frames is None:
                stacked[name] = column[:, self._layout.dropped :]
            else:
                stacked[name] = stacked_run(column, frames=frames, origin=origin, drop=self._layout.dropped, clear=clear)
        return stacked, mask[:, self._layout.dropped :]

    def _require_lead(self, begins_episode: Bools, what: str) -> None:
        short = (self._lead < self._layout.dropped) & ~begins_episode & ~self.missing
        if short.any():
            raise SchemaMismatch(
                f"{what}: an item begins in the middle of an episode with a lead of {int(self._lead[short][0])} rows, stacks of "
                f"{self._layout.dropped + 1} frames need {self._layout.dropped}; give its item rule a history of that many rows"
            )

    def _require_rows(self, lengths: Ints, what: str) -> None:
        longest = max(self._layout.view, key=lambda view: view.rows_needed)
        short = lengths < longest.rows_needed
        if short.any():
            raise SchemaMismatch(
                f"{what}: an item of {int(lengths[short][0])} rows is too short for its view {longest.name!r}, which needs "
                f"{longest.rows_needed}; write items that long (the rule Pattern does), or change the view"
            )
