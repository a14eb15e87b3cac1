"""Rows of a batch whose items lie on several shards. The key of an item tells its shard; each shard's rows go to their places."""

from __future__ import annotations

import numpy as np

from rollstream.clock import Deadline
from rollstream.replay.item_keys import shard_of
from rollstream.replay.row_fetch import FetchedRows, RowFetch, read_joined
from rollstream.replay.samples import SampledItems
from rollstream.replay.table_shards import TableShards
from rollstream.store import ChunkReader

__all__ = ["ShardRows"]

SHORTEST_READ_S = 0.1
"""Rows of items that were drawn are worth a try, however late it is."""


class ShardRows:
    """Fetches rows of all shards of a table. Not thread-safe, as its reader, which it owns."""

    def __init__(self, shards: TableShards, reader: ChunkReader) -> None:
        self._shards = shards
        self._reader = reader
        self._fetches: list[RowFetch] = []

    def read(self, items: SampledItems, *, deadline: Deadline) -> FetchedRows:
        """Rows of `items`, in their order.

        Raises:
            StoreUnavailable: Redis was not there in time.
            SchemaMismatch: what is stored there are not the table's rows.
        """
        if not self._fetches:
            self._fetches = self._made(deadline)
        self._reader.deadline_s = max(SHORTEST_READ_S, deadline.remaining_s())
        if len(self._fetches) == 1:
            return self._fetches[0].read(items)
        shards = shard_of(items.keys)
        places = [np.flatnonzero(shards == shard) for shard in range(len(self._fetches))]
        return read_joined(self._fetches, [items.part(place) for place in places], places=places)

    def ask(self, items: SampledItems) -> None:
        """Let Redis begin with the rows of the `items` that will be read next; only where all lie on one shard."""
        if len(self._fetches) == 1:
            self._fetches[0].ask(items)

    def forget(self) -> None:
        """The table may have other rows or shards now."""
        self._fetches = []

    def close(self) -> None:
        """Close the reader's connection."""
        self._reader.close()

    def _made(self, deadline: Deadline) -> list[RowFetch]:
        spec = self._shards.spec(deadline_s=deadline.remaining_s())
        rows_id = self._shards.rows_id(deadline_s=deadline.remaining_s())
        return [RowFetch(self._reader, table_id=rows_id, shard=shard, spec=spec) for shard in range(spec.shards)]
