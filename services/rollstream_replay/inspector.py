"""Rows of items that somebody looks at, straight from Redis."""

from __future__ import annotations

from rollstream.clock import SystemClock
from rollstream.replay.row_fetch import FetchedRows, RowFetch
from rollstream.replay.samples import SampledItems
from rollstream.store import Address, ChunkReader
from rollstream_replay.served_table import ServedTable

__all__ = ["fetch_rows"]


def fetch_rows(address: Address, table: ServedTable, items: SampledItems) -> FetchedRows:
    """Rows of `items`; waits for Redis."""
    reader = ChunkReader(address, clock=SystemClock())
    try:
        shard = table.shard
        spec = table.table.spec.model_copy(update={"view": (), "stack": {}})  # what is stored, not what a sample shows
        return RowFetch(reader, table_id=shard.table_id, shard=shard.shard, spec=spec).read(items)
    finally:
        reader.close()
