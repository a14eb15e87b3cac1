"""A look into a table: some items with their rows decoded, long values cut short."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.clock import SystemClock
from rollstream.replay.row_fetch import FetchedRows, RowFetch
from rollstream.replay.samples import SampledItems
from rollstream.replay.table import Table
from rollstream.store import Address, ChunkReader
from rollstream_replay.served_table import ServedTable

__all__ = ["ItemOrder", "choose_items", "describe_items", "fetch_rows"]

ItemOrder: TypeAlias = Literal["priority", "lowest", "newest", "oldest"]
VALUES_SHOWN = 16


def choose_items(table: Table, *, order: ItemOrder, limit: int) -> SampledItems:
    """Up to `limit` items, and with which probability one draw now gives each."""
    live = table.items.live()
    if order == "newest":
        live = live[::-1]
    elif order in ("priority", "lowest"):
        sign = -1.0 if order == "priority" else 1.0
        live = live[np.argsort(sign * table.items.priority[live], kind="stable")]
    items, _ = table.get(table.items.key[live[:limit]])
    return items


def fetch_rows(address: Address, table: ServedTable, items: SampledItems) -> FetchedRows:
    """Rows of `items`; waits for Redis."""
    reader = ChunkReader(address, clock=SystemClock())
    try:
        shard = table.shard
        spec = table.table.spec.model_copy(update={"view": (), "stack": {}})  # what is stored, not what a sample shows
        return RowFetch(reader, table_id=shard.table_id, shard=shard.shard, spec=spec).read(items)
    finally:
        reader.close()


def describe_items(items: SampledItems, fetched: FetchedRows) -> list[dict[str, Any]]:
    """Address, priority and use of each item, and the first values of each column of its rows; null when they are gone."""
    return [
        {
            "key": int(items.keys[at]),
            "priority": float(items.priority[at]),
            "probability": float(items.probability[at]),
            "times_sampled": int(items.times_sampled[at]),
            "writer": int(items.writer[at]),
            "environment": int(items.env[at]),
            "start_row": int(items.start[at]),
            "length": int(items.length[at]),
            "lead": int(items.lead[at]),
            "version": int(items.version[at]),
            "age_rows": int(items.age_rows[at]),
            "rows": None if fetched.missing[at] else _decoded(fetched, at),
        }
        for at in range(len(items))
    ]


def _decoded(fetched: FetchedRows, at: int) -> list[dict[str, Any]]:
    there = np.flatnonzero(fetched.mask[at])
    return [{name: _short(column[at, row]) for name, column in fetched.rows.items()} for row in there.tolist()]


def _short(value: npt.NDArray[Any]) -> Any:
    """A JSON value: numbers that are not finite as text, long arrays cut with their size told."""
    flat = np.asarray(value).reshape(-1)
    shown = [_plain(entry) for entry in flat[:VALUES_SHOWN].tolist()]
    if np.ndim(value) == 0:
        return shown[0]
    return shown if flat.size <= VALUES_SHOWN else {"first": shown, "shape": list(np.shape(value))}


def _plain(entry: Any) -> Any:
    if isinstance(entry, float) and not np.isfinite(entry):
        return str(entry)
    return entry if isinstance(entry, int | float | bool | str) else str(entry)
