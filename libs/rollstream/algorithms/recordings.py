"""Recorded data that a table begins with: read from a file or a Minari dataset, fitted to the table, written before the first update.

    settings.offline ─▶ Recording ─▶ read_recordings ─▶ Recorded: rows, and the table as it must be to take them
                                                          └──▶ write(writers)

An algorithm's agent names its recordings: `recordings` is a mapping from a table's name to what it begins with; agents without the
attribute have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock
from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.replay import EachRow, NStep, SampleToInsertRatio, TableSpec
from rollstream.replay.offline import OfflineRows, load_minari, load_npz, write_rows
from rollstream.replay.offline.loading import LoadResult, RowSink
from rollstream.replay.rules import ItemRule
from rollstream.spaces import Column, Flag, RowSpec

__all__ = ["RETURN", "Recorded", "Recording", "read_recordings", "with_returns"]

RETURN = Column(name="return", dtype="<f4", shape=())
"""Column with the discounted sum of a step's reward and of all that followed it in its episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a table begins with.

    Attributes:
        source: path of a NumPy archive (`.npz`), or a Minari dataset (folder or id), as the learner sees it.
        steps: steps of one item.
        discount: of the column `return`, for tables that have it.
    """

    source: str
    steps: int = 1
    discount: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Data that has been read.

    Attributes:
        data: rows with the columns of the table.
        rule: how they become items.
        spec: the table, large enough, and with a limiter that counts from the end of the data.
        items: how many they become.
    """

    data: OfflineRows
    rule: ItemRule
    spec: TableSpec
    items: int

    def write(self, writers: Sequence[RowSink], *, clock: Clock) -> LoadResult:
        """Write all rows, by writers for one environment, one for each shard."""
        return write_rows(self.data, writers, clock=clock)


def read_recordings(agent: Any, tables: Mapping[str, TableSpec]) -> dict[str, Recorded]:
    """The recordings of `agent` by table; empty for most algorithms.

    Raises:
        ConfigError: a file cannot be read, or is no recording of this environment.
    """
    found: Mapping[str, Recording] = getattr(agent, "recordings", {})
    return {name: _read(recording, tables[name]) for name, recording in found.items()}


def with_returns(rows: npt.NDArray[np.void], *, discount: float) -> npt.NDArray[np.float32]:
    """Discounted return from each row to the end of its episode [R]; 0 in final rows, which have no action.

    Where a recording was cut off the return is that of what was recorded: nothing is known of what would have followed.
    """
    reward = rows["reward"].astype(np.float64)
    flags = rows["flags"]
    begins = ((flags & Flag.FIRST) != 0).tolist()
    final = ((flags & Flag.FINAL) != 0).tolist()
    returns = np.zeros(len(rows), np.float64)
    later = 0.0
    for at in range(len(rows) - 1, -1, -1):
        later = 0.0 if final[at] else float(reward[at]) + discount * later
        returns[at] = later
        if begins[at]:
            later = 0.0
    return returns.astype(np.float32)


def _read(recording: Recording, spec: TableSpec) -> Recorded:
    wanted = spec.row_spec
    names = [column.name for column in wanted.columns]
    if not recording.source:
        raise ConfigError("settings.offline is empty; name the recorded data: a NumPy archive (.npz) or a Minari dataset")
    path = Path(recording.source)
    is_file = path.is_file() or path.suffix == ".npz"
    data = load_npz(path, keep=names) if is_file else load_minari(recording.source)
    if RETURN in wanted.columns:
        if not data.episodic:
            raise ConfigError(
                f"{recording.source} does not say where episodes end, so there are no returns; use bc, which needs none"
            )
        data = _with_column(data, RETURN, with_returns(data.rows, discount=recording.discount))
    try:
        fitted = _chosen(data, names).fitted(wanted)
    except SchemaMismatch as error:
        raise ConfigError(f"{error}; settings.offline must be a recording of this environment") from error
    rule = NStep(recording.steps) if data.episodic else EachRow()
    items = int(np.count_nonzero((fitted.rows["flags"] & Flag.FINAL) == 0)) if data.episodic else len(fitted.rows)
    limiter = spec.limiter
    if isinstance(limiter, SampleToInsertRatio) and limiter.min_items < items:
        limiter = SampleToInsertRatio(
            samples_per_insert=limiter.samples_per_insert, min_items=items, tolerance_items=limiter.tolerance_items
        )
    larger = TableSpec.model_validate(
        {**spec.model_dump(), "limiter": limiter.model_dump(), "max_items": max(spec.max_items, items), "rows": wanted.fields}
    )
    return Recorded(data=fitted, rule=rule, spec=larger, items=items)


def _chosen(data: OfflineRows, names: Sequence[str]) -> OfflineRows:
    """Without columns that the table has not: what else was recorded, and what another algorithm added."""
    kept = tuple(column for column in data.row_spec.columns if column.name in names)
    if len(kept) == len(data.row_spec.columns):
        return data
    return _copied(data, RowSpec(kept), {})


def _with_column(data: OfflineRows, column: Column, values: npt.NDArray[Any]) -> OfflineRows:
    others = tuple(known for known in data.row_spec.columns if known.name != column.name)
    return _copied(data, RowSpec((*others, column)), {column.name: values})


def _copied(data: OfflineRows, spec: RowSpec, given: Mapping[str, npt.NDArray[Any]]) -> OfflineRows:
    rows = np.zeros(len(data.rows), spec.dtype)
    for name in spec.dtype.names or ():
        rows[name] = given[name] if name in given else data.rows[name]
    return replace(data, row_spec=spec, rows=rows)
