"""Removing items on request: through the log, as clients do it, so that a shard that is rebuilt removes them too."""

from __future__ import annotations

import asyncio
from typing import Any

from rollstream.clock import Deadline
from rollstream.errors import DeadlineExceeded
from rollstream.replay.log import DeleteEntry, encode_delete
from rollstream.store import keys
from rollstream_replay.shard_server import ShardServer

__all__ = ["Removal"]

DEADLINE_S = 10.0
LOOK_EVERY_S = 0.005


class Removal:
    """Writes delete entries and waits until they have been read."""

    def __init__(self, server: ShardServer) -> None:
        self._server = server

    async def remove(self, table_id: str, entry: DeleteEntry) -> None:
        """Remove what `entry` says; returns when it is gone.

        Raises:
            DeadlineExceeded: the shard did not come to it in time; it will.
        """
        server = self._server
        rows = server.rows_of(table_id)
        log, buffer = keys.table_log(rows.table_id, server.shard), encode_delete(entry)

        def fill(pipeline: Any) -> None:
            pipeline.xadd(log, {b"d": buffer})

        replies = await server.in_thread(lambda: server.guard(f"remove items of table {table_id}", fill))
        wanted = _number(replies[-1].decode())
        deadline = Deadline(server.clock, after_s=DEADLINE_S)
        while _number(rows.shard.cursor) < wanted:
            if deadline.passed():
                raise DeadlineExceeded(
                    f"table {table_id}: the removal is in the log, but the shard did not read it within {DEADLINE_S:.0f} s"
                )
            await asyncio.sleep(LOOK_EVERY_S)
        server.advance(rows)


def _number(stream_id: str) -> tuple[int, int]:
    milliseconds, _, number = stream_id.partition("-")
    return int(milliseconds), int(number or 0)
