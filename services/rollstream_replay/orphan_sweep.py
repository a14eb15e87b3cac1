"""Chunks that no item and no open writer needs: of a writer that was killed between its rows and its log entry, of an import that
broke off, of a shard that died before it deleted what it had let go of.

    every `sweep_every_s`: SCAN all keys, slowly ─▶ those of our row spaces ─▶ not needed ─┬─ seen last time too, writer silent ─▶ UNLINK
                                                                                          └─ otherwise remembered until next time

Rows stand in Redis before their log entry, so one look says nothing. Two looks apart with a writer of which nothing was heard in
between do: whoever still tries writes all its rows again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.coverage import Coverage, capture_coverage
from rollstream.store import ChunkReader, Store, chunk_prefix, keys
from rollstream_replay.dropped_tables import DroppedTables
from rollstream_replay.served_rows import ServedRows

if TYPE_CHECKING:
    from rollstream_replay.shard_server import ShardServer

__all__ = ["OrphanSweep", "addresses_of"]

SCAN_KEYS = 1000
SCAN_PAUSE_S = 0.01
UNLINK_CHUNKS = 4096
MOST_REMEMBERED = 1 << 20
"""Orphans of one row space that are remembered from one look to the next; more have to wait for a later one."""
TABLES = b"rs:{"
"""What the keys of all tables start with."""
CHUNK_PREFIX_BYTES = len(chunk_prefix("", 0))
SHARD_PREFIX_BYTES = len(keys.shard_prefix("", 0))
SUFFIX = np.dtype([("writer", ">u4"), ("env", ">u4"), ("chunk_no", ">u8")])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Ends of the keys of all chunks, one after another, by row space; and what the keys of shards of any table start with."""

    chunks: dict[str, bytearray]
    shards: set[bytes]


class OrphanSweep:
    """The looks of one shard, one after another.

    Args:
        every_s: time between two looks.
    """

    def __init__(self, server: ShardServer, *, every_s: float) -> None:
        self._server = server
        self._every_s = every_s
        self._seen: dict[str, set[bytes]] = {}
        self._dropped = DroppedTables(server)

    async def look(self, reader: ChunkReader) -> int:
        """One look at all keys; returns how many chunks were deleted."""
        server, deleted = self._server, 0
        seen: dict[str, set[bytes]] = {}
        found = await self._scan()
        for rows_id, suffixes in found.chunks.items():
            rows = server.rows.get(rows_id)
            if rows is None:
                continue
            coverage = capture_coverage(rows.shard.group)
            orphans = await server.in_thread(partial(_not_covered, coverage, suffixes))
            addresses = addresses_of(orphans)
            may_go = coverage.let_go(addresses) | self._silent(rows, addresses.writer)
            before = self._seen.get(rows_id, set())
            doomed = bytearray()
            kept: set[bytes] = set()
            for at in range(len(addresses)):
                suffix = bytes(orphans[at * SUFFIX.itemsize : (at + 1) * SUFFIX.itemsize])
                if suffix in before and may_go[at]:
                    doomed += suffix
                elif len(kept) < MOST_REMEMBERED:
                    kept.add(suffix)
            deleted += await self._delete(rows, reader, addresses_of(doomed))
            seen[rows_id] = kept
        self._seen = seen
        if server.shard == 0:  # one is enough
            await self._dropped.look(found.shards)
        return deleted

    async def _scan(self) -> _Found:
        server = self._server
        found = _Found(chunks={rows_id: bytearray() for rows_id in server.rows}, shards=set())
        prefixes = {chunk_prefix(rows_id, server.shard): ends for rows_id, ends in found.chunks.items()}
        cursor = 0
        while True:
            cursor = await server.in_thread(partial(_scan_some, server.store, cursor, prefixes, found.shards))
            if not cursor:
                return found
            await asyncio.sleep(SCAN_PAUSE_S)

    def _silent(self, rows: ServedRows, writer: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Whether nothing was heard of a chunk's writer [A] since before the last look."""
        different, at = np.unique(writer, return_inverse=True)
        silent = np.array([rows.silent_for(each) > self._every_s for each in different.tolist()], np.bool_)
        return silent[at]

    async def _delete(self, rows: ServedRows, reader: ChunkReader, doomed: ChunkAddresses) -> int:
        for start in range(0, len(doomed), UNLINK_CHUNKS):
            part = slice(start, start + UNLINK_CHUNKS)
            some = ChunkAddresses(writer=doomed.writer[part], env=doomed.env[part], chunk_no=doomed.chunk_no[part])
            if self._server.serving:
                rows.orphans_swept += await self._server.in_thread(partial(rows.shard.unlink, reader, some))
        return len(doomed)


def addresses_of(suffixes: bytes | bytearray) -> ChunkAddresses:
    """Writer, environment and number of chunks, from the ends of their keys."""
    parsed = np.frombuffer(bytes(suffixes), SUFFIX)
    return ChunkAddresses(
        writer=parsed["writer"].astype(np.uint32),
        env=parsed["env"].astype(np.uint32),
        chunk_no=parsed["chunk_no"].astype(np.uint64),
    )


def _not_covered(coverage: Coverage, suffixes: bytearray) -> bytes:
    ends = np.frombuffer(suffixes, SUFFIX)
    return ends[~coverage.covers(addresses_of(suffixes))].tobytes()


def _scan_some(store: Store, cursor: int, into: Mapping[bytes, bytearray], shards: set[bytes]) -> int:
    """One step of the scan: ends of keys to where they belong; returns the next cursor."""
    reply: Any = store.run("look for rows that nobody needs", lambda client: client.scan(cursor=cursor, count=SCAN_KEYS))
    following, found = reply
    for key in found:
        if not key.startswith(TABLES):
            continue
        shards.add(key[:SHARD_PREFIX_BYTES])
        ends = into.get(key[:CHUNK_PREFIX_BYTES])
        if ends is not None and len(key) == CHUNK_PREFIX_BYTES + SUFFIX.itemsize:
            ends += key[CHUNK_PREFIX_BYTES:]
    return int(following)
