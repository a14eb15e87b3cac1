"""Recorded rows into tables in one call, at the speed of the row path: through writers of their own, made when first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, Deadline
from rollstream.errors import SchemaMismatch, TableError
from rollstream.metrics import Waits
from rollstream.replay.rules import EachRow, ItemRule
from rollstream.replay.spec import TableSpec
from rollstream.replay.step_layout import StepLayout
from rollstream.replay.writer import TableWriter, WriteResult
from rollstream.spaces import Flag
from rollstream.store import Address, Store

__all__ = ["Inserter"]

FLUSH_BYTES = 2 << 20
FLUSH_ROWS = 1 << 14
EPISODES = ""
"""Stands for the writer of whole episodes among those of single rows, which go by their table."""


class Inserter:
    """Writes rows that were recorded elsewhere; each way of cutting them has a writer of one environment.

    Args:
        finite: as of `StepLayout`.
    """

    def __init__(
        self,
        store: Store,
        address: Address,
        *,
        table_id: str,
        spec: TableSpec,
        tables: Mapping[str, ItemRule | Sequence[ItemRule]],
        clock: Clock,
        waits: Waits | None = None,
        while_waiting: Callable[[bool], None] | None = None,
        finite: frozenset[str] = frozenset(),
    ) -> None:
        self._store = store
        self._address = address
        self._table_id = table_id
        self._spec = spec
        self._tables = tables
        self._clock = clock
        self._waits = waits
        self._while_waiting = while_waiting
        self._layout = StepLayout(spec.row_spec, finite=finite)
        self._writers: dict[str, TableWriter] = {}

    def rows(
        self, columns: Mapping[str, Any], *, table: str, priorities: npt.ArrayLike | None, version: int, deadline_s: float
    ) -> WriteResult:
        """Every row as one item of `table`."""
        rows = self._packed(columns, version=version)
        given = None if priorities is None else np.asarray(priorities, np.float32)
        if given is not None:
            if given.shape != (len(rows),):
                raise TableError(f"{given.size} priorities were given for {len(rows)} rows; give one for each")
            if not (np.isfinite(given) & (given >= 0)).all():
                raise TableError("priorities must be finite and >= 0, some are not; take absolute TD errors, for example")
        rows["flags"][:1] = Flag.FIRST
        writer = self._writer(table, {table: EachRow()})
        return self._write(writer, rows, priorities=given, bounds=None, deadline_s=deadline_s)

    def episodes(
        self,
        columns: Mapping[str, Any],
        *,
        offsets: npt.ArrayLike,
        terminated: npt.ArrayLike | None,
        version: int,
        deadline_s: float,
    ) -> WriteResult:
        """Whole episodes, cut as the tables' rules say."""
        rows = self._packed(columns, version=version)
        bounds = np.asarray(offsets, np.int64)
        if bounds.ndim != 1 or len(bounds) < 2 or bounds[0] != 0 or bounds[-1] != len(rows) or (np.diff(bounds) < 2).any():
            raise TableError(
                f"offsets of episodes go from 0 to the {len(rows)} rows, at least 2 rows an episode (a step and the final "
                f"observation), got {bounds.tolist()[:6]}..."
            )
        ends = np.zeros(len(bounds) - 1, np.bool_) if terminated is None else np.asarray(terminated, np.bool_)
        if ends.shape != (len(bounds) - 1,):
            raise TableError(f"terminated has {ends.size} entries for {len(bounds) - 1} episodes; give one for each")
        rows["flags"][bounds[:-1]] = Flag.FIRST
        rows["flags"][bounds[1:] - 1] = np.where(ends, Flag.FINAL | Flag.TERMINATED, Flag.FINAL | Flag.TRUNCATED)
        return self._write(self._writer(EPISODES, self._tables), rows, priorities=None, bounds=bounds, deadline_s=deadline_s)

    def flush(self, *, deadline_s: float) -> None:
        """Wait until the shard has admitted everything."""
        for writer in self._writers.values():
            writer.flush(deadline_s=deadline_s)

    def close(self, *, deadline_s: float) -> None:
        """Let go of all writers."""
        for writer in self._writers.values():
            writer.close(deadline_s=deadline_s)

    def _writer(self, name: str, tables: Mapping[str, ItemRule | Sequence[ItemRule]]) -> TableWriter:
        writer = self._writers.get(name)
        if writer is None:
            writer = self._writers[name] = TableWriter(
                self._store,
                self._address,
                table_id=self._table_id,
                spec=self._spec,
                tables=tables,
                environments=1,
                clock=self._clock,
                waits=self._waits,
                while_waiting=self._while_waiting,
            )
        return writer

    def _packed(self, columns: Mapping[str, Any], *, version: int) -> npt.NDArray[np.void]:
        count = _rows(columns)
        given = self._layout.read(columns, count=count)
        missing = self._layout.missing(given)
        if missing:
            raise SchemaMismatch(f"the rows lack the columns {', '.join(missing)}, given are: {', '.join(given)}")
        rows = np.zeros(count, self._spec.row_spec.dtype)
        for name, column in given.items():
            rows[name] = column
        rows["version"] = version
        return rows

    def _write(
        self,
        writer: TableWriter,
        rows: npt.NDArray[np.void],
        *,
        priorities: npt.NDArray[np.float32] | None,
        bounds: npt.NDArray[np.int64] | None,
        deadline_s: float,
    ) -> WriteResult:
        deadline = Deadline(self._clock, after_s=deadline_s)
        size = max(1, min(FLUSH_ROWS, FLUSH_BYTES // rows.itemsize))
        chunk_rows = self._spec.chunk_rows
        size = max(chunk_rows, size // chunk_rows * chunk_rows)  # so that only the last flush has a chunk that is not full
        results = []
        for begin in range(0, len(rows), size):
            part = rows[begin : begin + size]
            results.append(
                writer.append_rows(
                    part,
                    np.array([0, len(part)]),
                    deadline_s=deadline.remaining_s(),
                    pad=np.array([begin + size >= len(rows)]),
                    priority=None if priorities is None else priorities[begin : begin + size],
                )
            )
        names = {name for result in results for name in result.keys}
        return WriteResult(
            items=sum(result.items for result in results),
            rows=len(rows),
            waited_s=sum(result.waited_s for result in results),
            keys={name: np.concatenate([result.keys[name] for result in results]) for name in names},
        )


def _rows(columns: Mapping[str, Any]) -> int:
    """Length of the first column, however deep it stands."""
    for value in columns.values():
        return _rows(value) if isinstance(value, Mapping) else len(value)
    raise SchemaMismatch("there are no columns to insert; give arrays [M, ...] by name")
