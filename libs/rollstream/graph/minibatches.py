"""Shuffled minibatches of fixed size from any number of rows, in buffers made once.

    rows [M] --permutation, np.take--> buffers [K * batch_rows]: | n rows, padding | n rows, padding | ...

There are K = ceil(M / batch_rows) of them. Rows are divided evenly, so that no minibatch is left with a few rows only,
whose noise would weigh as much as a full one. Padding repeats a row with weight 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.graph.inputs import Input, fill

__all__ = ["Minibatches"]

WEIGHT = "weight"


class Minibatches:
    """See the module. `buffers` are replaced when more minibatches are needed than ever before: ask `reserve`."""

    def __init__(self, inputs: Sequence[Input], *, batch_rows: int) -> None:
        self._inputs = [item for item in inputs if item.role == "column"]
        self._batch_rows = batch_rows
        self._weighted = any(item.name == WEIGHT for item in self._inputs)
        self._capacity = 0
        self.buffers: dict[str, npt.NDArray[Any]] = {}
        self._layout_rows = -1
        self._real: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)

    def reserve(self, rows: int) -> bool:
        """Make room for `rows` rows; True when the buffers are new ones."""
        needed = self.count(rows)
        if needed <= self._capacity:
            return False
        self._capacity = needed
        self.buffers = {item.name: np.zeros((needed * self._batch_rows, *item.shape), item.dtype) for item in self._inputs}
        return True

    def count(self, rows: int) -> int:
        """Minibatches that `rows` rows make."""
        if rows < 1:
            raise ConfigError("an update needs at least 1 row, got 0")
        if not self._weighted and rows % self._batch_rows:
            raise ConfigError(
                f"{rows} rows are not a multiple of batch_rows {self._batch_rows}, and the loss has no weight to pad with"
            )
        return -(-rows // self._batch_rows)

    def shuffle(self, columns: Mapping[str, npt.NDArray[Any]], *, rows: int, generator: np.random.Generator) -> None:
        """Fill the buffers with a fresh permutation of all rows."""
        order = self._order(rows, generator)
        for item in self._inputs:
            target = self.buffers[item.name][: len(order)]
            column = self._column(columns, item, rows)
            if column is None:
                target[...] = 1
            elif column.dtype == target.dtype:
                np.take(column, order, axis=0, out=target, mode="clip")
            else:
                fill(target, column[order], name=item.name, where="update_many")
        if len(order) != rows:
            self.buffers[WEIGHT][: len(order)][~self._real] = 0

    def fill(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Fill the first minibatch with exactly `batch_rows` rows, in order."""
        for item in self._inputs:
            column = self._column(columns, item, self._batch_rows)
            if column is None:
                self.buffers[item.name][: self._batch_rows] = 1
            else:
                fill(self.buffers[item.name][: self._batch_rows], column, name=item.name, where="update")

    def pad(self, columns: Mapping[str, npt.NDArray[Any]], *, where: str) -> None:
        """Fill the first minibatch with at most `batch_rows` rows, in order; the rest repeats the first one with weight 0."""
        rows = len(next(iter(columns.values()))) if columns else 0
        if not 1 <= rows <= self._batch_rows:
            raise ConfigError(f"{where} takes 1 to {self._batch_rows} rows, as many as it was built for, got {rows}")
        if rows < self._batch_rows and not self._weighted:
            raise ConfigError(
                f"{where} got {rows} rows, was built for {self._batch_rows}, and the loss has no weight to pad with"
            )
        for item in self._inputs:
            target = self.buffers[item.name][: self._batch_rows]
            column = self._column(columns, item, rows)
            if column is None:
                target[:rows] = 1
            else:
                fill(target[:rows], column, name=item.name, where=where)
            target[rows:] = 0 if item.name == WEIGHT else target[0]

    def _column(self, columns: Mapping[str, npt.NDArray[Any]], item: Input, rows: int) -> npt.NDArray[Any] | None:
        """The column, checked; None for a missing weight, which is 1."""
        column = columns.get(item.name)
        if column is None:
            if item.name == WEIGHT:
                return None
            raise SchemaMismatch(
                f"the loss reads column {item.name}, which is missing; the batch has {', '.join(sorted(columns))}"
            )
        if column.shape != (rows, *item.shape):
            raise SchemaMismatch(
                f"column {item.name} has shape {list(column.shape)}, the loss was built for {[rows, *item.shape]}"
            )
        return column

    def _order(self, rows: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
        permutation = generator.permutation(rows)
        total = self.count(rows) * self._batch_rows
        if total == rows:
            return permutation
        if self._layout_rows != rows:
            self._real = _real_places(rows, self._batch_rows)
            self._layout_rows = rows
        order = np.full(total, permutation[0], np.int64)
        order[self._real] = permutation
        return order


def _real_places(rows: int, batch_rows: int) -> npt.NDArray[np.bool_]:
    """Which places of the padded buffers hold a row."""
    count = -(-rows // batch_rows)
    sizes = np.full(count, rows // count)
    sizes[: rows % count] += 1
    return np.asarray(np.arange(batch_rows)[None, :] < sizes[:, None]).reshape(-1)
