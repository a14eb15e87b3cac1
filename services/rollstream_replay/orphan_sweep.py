"""Chunks that no item and no open writer needs: of a writer that was killed between its rows and its log entry, of an import that
broke off, of a shard that died before it deleted what it had let go of.

    every `sweep_every_s`: SCAN all keys, slowly ─▶ those of our row spaces ─▶ not needed ─┬─ seen last time too, writer silent ─▶ UNLINK
                                                                                          └─ otherwise remembered until next time

Rows stand in Redis before their log entry, so one look says nothing. Two looks apart with a writer of which nothing was heard in
between do: whoever still tries writes all its rows again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.coverage import capture_coverage
from rollstream.store import ChunkReader, chunk_prefix, keys
from rollstream_replay.served_rows import ServedRows

if TYPE_CHECKING:
    from rollstream_replay.shard_server import ShardServer

__all__ = ["OrphanSweep", "addresses_of"]

SCAN_KEYS = 1000
SCAN_PAUSE_S = 0.01
UNLINK_CHUNKS = 4096
MOST_REMEMBERED = 1 << 20
"""Orphans of one row space that are remembered from one look to the next; more have to wait for a later one."""
SUFFIX = np.dtype([("writer", ">u4"), ("env", ">u4"), ("chunk_no", ">u8")])


class OrphanSweep:
    """The looks of one shard, one after another.

    Args:
        every_s: time between two looks.
    """

    def __init__(self, server: ShardServer, *, every_s: float) -> None:
        self._server = server
        self._every_s = every_s
        self._seen: dict[str, set[bytes]] = {}

    async def look(self, reader: ChunkReader) -> int:
        """One look at all keys; returns how many chunks were deleted."""
        server = self._server
        found = await self._scan()
        deleted = 0
        seen: dict[str, set[bytes]] = {}
        for rows_id, chunk_keys in found.items():
            rows = server.rows.get(rows_id)
            if rows is None:
                continue
            addresses = await server.in_thread(partial(addresses_of, chunk_keys))
            coverage = capture_coverage(rows.shard.group)
            needed = await server.in_thread(partial(coverage.covers, addresses))
            let_go = await server.in_thread(partial(coverage.let_go, addresses))
            before = self._seen.get(rows_id, set())
            silent = self._silent(rows, addresses.writer)
            doomed: list[int] = []
            kept: set[bytes] = set()
            for at in np.flatnonzero(~needed).tolist():
                if chunk_keys[at] in before and (let_go[at] or silent[at]):
                    doomed.append(at)
                elif len(kept) < MOST_REMEMBERED:
                    kept.add(chunk_keys[at])
            deleted += await self._delete(rows, reader, addresses, np.array(doomed, np.int64))
            seen[rows_id] = kept
        self._seen = seen
        return deleted

    async def _scan(self) -> dict[str, list[bytes]]:
        """Keys of chunks by row space."""
        server = self._server
        prefixes = {chunk_prefix(rows_id, server.shard): rows_id for rows_id in server.rows}
        found: dict[str, list[bytes]] = {rows_id: [] for rows_id in server.rows}
        if not prefixes:
            return found
        prefix_bytes = len(next(iter(prefixes)))
        cursor = 0
        while True:
            reply: Any = await server.in_thread(
                partial(server.store.run, "look for rows that nobody needs", partial(_scan_some, cursor))
            )
            cursor, some = reply
            for key in some:
                rows_id = prefixes.get(key[:prefix_bytes])
                if rows_id is not None and len(key) == prefix_bytes + keys.CHUNK_KEY_SUFFIX_BYTES:
                    found[rows_id].append(key)
            if not cursor:
                return found
            await asyncio.sleep(SCAN_PAUSE_S)

    def _silent(self, rows: ServedRows, writer: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Whether nothing was heard of a chunk's writer [A] since before the last look."""
        different, at = np.unique(writer, return_inverse=True)
        silent = np.array([rows.silent_for(each) > self._every_s for each in different.tolist()], np.bool_)
        return silent[at]

    async def _delete(
        self, rows: ServedRows, reader: ChunkReader, addresses: ChunkAddresses, doomed: npt.NDArray[np.int64]
    ) -> int:
        for start in range(0, len(doomed), UNLINK_CHUNKS):
            which = doomed[start : start + UNLINK_CHUNKS]
            part = ChunkAddresses(writer=addresses.writer[which], env=addresses.env[which], chunk_no=addresses.chunk_no[which])
            rows.orphans_swept += await self._server.in_thread(partial(rows.shard.unlink, reader, part))
        return len(doomed)


def addresses_of(chunk_keys: list[bytes]) -> ChunkAddresses:
    """Writer, environment and number of each chunk, from its key."""
    suffixes = b"".join(key[-SUFFIX.itemsize :] for key in chunk_keys)
    parsed = np.frombuffer(suffixes, SUFFIX)
    return ChunkAddresses(
        writer=parsed["writer"].astype(np.uint32),
        env=parsed["env"].astype(np.uint32),
        chunk_no=parsed["chunk_no"].astype(np.uint64),
    )


def _scan_some(cursor: int, client: Any) -> Any:
    return client.scan(cursor=cursor, count=SCAN_KEYS)
