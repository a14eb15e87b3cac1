"""Keys of tables that are no more: a writer went on after the table was dropped, or one of its shards was away at that time.

The spec of a table stands in Redis before any other key of it. So keys whose hash tag belongs to no table at two looks, the second
compared with specs that are read after the keys were found, are nobody's.
"""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from rollstream.replay.sweep import sweep_prefix
from rollstream.store import Store, keys

if TYPE_CHECKING:
    from rollstream_replay.shard_server import ShardServer

__all__ = ["DroppedTables", "shards_of_tables"]

_LOG = logging.getLogger("rollstream.replay")
MOST_SHARDS = 256


class DroppedTables:
    """The looks of one process, one after another."""

    def __init__(self, server: ShardServer) -> None:
        self._server = server
        self._seen: set[bytes] = set()

    async def look(self, found: set[bytes]) -> int:
        """Delete what belongs to no table, of the shards `found` by what their keys start with; returns the number of keys."""
        server = self._server
        unknown = found - await server.in_thread(partial(shards_of_tables, server.store))
        doomed, self._seen = unknown & self._seen, unknown - self._seen
        deleted = 0
        for prefix in doomed:
            if server.serving:
                deleted += await server.in_thread(partial(sweep_prefix, server.store, prefix))
        if deleted:
            _LOG.warning("deleted %d keys of %d shards of tables that are no more", deleted, len(doomed))
        return deleted


def shards_of_tables(store: Store) -> set[bytes]:
    """What the keys of each shard of each table start with."""
    stored: Any = store.run("read the tables of the cell", lambda client: client.hgetall(keys.tables()))
    return {
        keys.shard_prefix(table_id.decode(), shard).encode()
        for table_id, text in stored.items()
        for shard in range(_shards(text))
    }


def _shards(text: bytes) -> int:
    """How many shards a spec names; all that there can be, when this release cannot tell."""
    try:
        return int(json.loads(text).get("shards", 1))
    except (ValueError, TypeError, AttributeError):
        return MOST_SHARDS
