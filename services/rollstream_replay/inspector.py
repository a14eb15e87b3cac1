"""A look into a table: some items with their rows decoded, long values cut short."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rollstream.clock import SystemClock
from rollstream.replay.row_fetch import FetchedRows, RowFetch
from rollstream.replay.samples import SampledItems
from rollstream.store import ChunkReader
from rollstream_replay.served_table import ServedTable
from rollstream_replay.shard_server import ShardServer

__all__ = ["inspect_items"]

VALUES_SHOWN = 16


async def inspect_items(
    server: ShardServer, table: ServedTable, *, order: Literal["priority", "newest", "oldest"], limit: int
) -> list[dict[str, Any]]:
    """Up to `limit` items: their address, priority, use, and the first values of each column of their rows."""
    items = _chosen(table, order, limit)

    def fetch() -> FetchedRows:
        reader = ChunkReader(server.address, clock=SystemClock())
        try:
            spec = table.shard.table.spec
            return RowFetch(reader, table_id=table.table_id, shard=table.shard.shard, spec=spec).read(items)
        finally:
            reader.close()

    fetched = await server.in_thread(fetch)
    return [
        {
            "key": int(items.keys[at]),
            "priority": float(items.priority[at]),
            "times_sampled": int(items.times_sampled[at]),
            "writer": int(items.writer[at]),
            "environment": int(items.env[at]),
            "start_row": int(items.start[at]),
            "rows": None if fetched.missing[at] else _decoded(fetched.rows[at, : int(items.length[at])]),
        }
        for at in range(len(items))
    ]


def _chosen(table: ServedTable, order: str, limit: int) -> SampledItems:
    index = table.shard.table
    live = index.items.live()
    if order == "newest":
        live = live[::-1]
    elif order == "priority":
        live = live[np.argsort(-index.items.priority[live], kind="stable")]
    slots = live[:limit]
    items = index.items
    return SampledItems(
        keys=items.keys(slots),
        start=items.start[slots].astype(np.uint64),
        probability=np.zeros(len(slots)),
        writer=items.writer[slots],
        env=items.env[slots],
        length=items.length[slots].astype(np.uint32),
        priority=items.priority[slots],
        times_sampled=items.times_sampled[slots],
        table_items=index.size,
    )


def _decoded(rows: npt.NDArray[np.void]) -> list[dict[str, Any]]:
    return [{name: _short(row[name]) for name in rows.dtype.names or ()} for row in rows]


def _short(value: Any) -> Any:
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
