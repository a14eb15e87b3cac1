"""What a serving shard does over and over, each in a task of its own; whatever waits for Redis runs in threads.

read          logs ─▶ line ─▶ index; a change in the cell ─▶ catalog
acknowledge   index ─▶ position, credit of writers
elsewhere     positions of other shards ─▶ limiters
tidy          index ─▶ UNLINK of rows that nobody needs; who waits for whom
snapshot      index ─▶ Redis, log trimmed
credit        given once more now and then; writers that are gone forgotten
sweep         rows that nobody ever will need
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from rollstream.errors import StoreUnavailable
from rollstream.replay.group_state import room_for
from rollstream.replay.shard import LogEntries
from rollstream.store import Changes, ChunkReader, keys
from rollstream.store.retry import is_out_of_memory
from rollstream_replay.orphan_sweep import OrphanSweep
from rollstream_replay.other_shards import LOOK_EVERY_S, apply_counts, read_counts, wanted_positions
from rollstream_replay.served_rows import ServedRows

if TYPE_CHECKING:
    from rollstream_replay.shard_server import ShardServer

__all__ = ["Upkeep"]

_LOG = logging.getLogger("rollstream.replay")
BLOCK_MS = 500
READ_ENTRIES = 128
TIDY_EVERY_S = 0.5
POSITION_EVERY_S = 1.0
SHARED_POSITION_EVERY_S = 0.05
"""How soon a change of numbers alone is written down; sooner where other shards count with them."""
READ_PAUSE_S = 0.001
ACKNOWLEDGE_PAUSE_S = 0.008
"""Pauses after a read and after an acknowledgement, so that under load several flushes share one. The second is cut short for a writer
that has used half of what it may have in the log: it would stand still."""
REPEAT_CREDIT_EVERY_S = 5.0
FULL_PAUSE_S = 0.5
"""Between two attempts to write while Redis is full."""
SNAPSHOT_AGAIN_AFTER_S = 10.0
FIRST_SWEEP_AFTER_S = 10.0


class Upkeep:
    """The loops of one shard.

    Attributes:
        dirty: set it when something is to be acknowledged.
        hurry: set it when that should not wait for more.
        crowded: set it when more is to be deleted than may wait for its time.
    """

    def __init__(self, server: ShardServer, *, sweep_every_s: float) -> None:
        self.dirty = asyncio.Event()
        self.hurry = asyncio.Event()
        self.crowded = asyncio.Event()
        self._server = server
        self._sweep_every_s = sweep_every_s
        self._changes_id = "0-0"

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """All loops, to be run side by side while the shard serves."""
        return [
            self._read(),
            self._acknowledge(),
            self._elsewhere(),
            self._tidy(),
            self._snapshot(),
            self._repeat_credit(),
            self._sweep(),
        ]

    async def begin(self) -> None:
        """Note where changes of the cell stand now, so that none is missed from here on."""
        self._changes_id = await self._server.in_thread(Changes(self._server.store).latest)

    async def save_snapshot(self, rows: ServedRows) -> bool:
        """Save the index of a row space now; False while an entry is half admitted, or Redis is full."""
        shard, server = rows.shard, self._server
        room = await server.in_thread(lambda: room_for(shard.group))
        if shard.group.admitting is not None or not server.holds(rows):
            return False
        snapshot = shard.snapshot(room)
        try:
            async with rows.writing:
                if not server.holds(rows):
                    return False
                await server.in_thread(lambda: shard.save_snapshot(snapshot))
        except StoreUnavailable as error:
            rows.snapshot_failed_s = server.clock.monotonic_s()
            if not is_out_of_memory(error):
                raise
            return False
        rows.snapshot_failed_s = None
        return True

    # --- loops -----------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        server = self._server
        while True:
            server.health.beat("log")
            served = {keys.table_log(rows_id, server.shard): rows for rows_id, rows in server.rows.items()}
            positions = {key: rows.shard.cursor for key, rows in served.items()}
            for key, entries in await server.in_thread(partial(self._read_logs, positions)):
                if key == keys.changes():
                    await self._changed(entries)
                    continue
                rows = served[key]
                if server.holds(rows):
                    rows.take(entries)
                    server.advance(rows)
                    rows.settle()
            await asyncio.sleep(READ_PAUSE_S)

    def _read_logs(self, positions: dict[str, str]) -> list[tuple[str, LogEntries]]:
        """New entries of all logs; a change in the cell wakes too, for it may be a new table."""

        def operation(client: Any) -> Any:
            return client.xread({**positions, keys.changes(): self._changes_id}, count=READ_ENTRIES, block=BLOCK_MS)

        reply = self._server.store.run("read the logs of tables", operation)
        return [(key.decode(), entries) for key, entries in reply]

    async def _changed(self, entries: LogEntries) -> None:
        self._changes_id = entries[-1][0].decode()
        if any(fields.get(b"kind") == b"table" for _, fields in entries):
            await self._server.catalog.look()

    async def _acknowledge(self) -> None:
        last_s: dict[str, float] = {}
        server = self._server
        while True:
            await self.dirty.wait()
            self.dirty.clear()
            later_s = 0.0
            for rows in list(server.rows.values()):
                if rows.garbage_crowded:
                    continue  # writers must not run ahead of deletion: `_tidy` has been told, and tells when it has come to these
                every_s = SHARED_POSITION_EVERY_S if rows.shard.table.spec.shards > 1 else POSITION_EVERY_S
                now_s = server.clock.monotonic_s()
                if not rows.writers_dirty and now_s - last_s.get(rows.table_id, 0.0) < every_s:
                    if rows.samples_dirty:
                        later_s = every_s
                    continue
                if not rows.writers_dirty and not rows.samples_dirty:
                    continue
                last_s[rows.table_id] = now_s
                await self._acknowledge_one(rows)
            if later_s:
                asyncio.get_running_loop().call_later(later_s, self.dirty.set)
            await self._pause()

    async def _pause(self) -> None:
        """Let several flushes share an acknowledgement, unless a writer might stand still meanwhile."""
        if any(rows.writers_near_bound for rows in self._server.rows.values()):
            return
        self.hurry.clear()
        timer = asyncio.get_running_loop().call_later(ACKNOWLEDGE_PAUSE_S, self.hurry.set)
        await self.hurry.wait()
        timer.cancel()

    async def _acknowledge_one(self, rows: ServedRows) -> None:
        server, shard = self._server, rows.shard
        progress = rows.progress()
        try:
            async with rows.writing:
                if not server.holds(rows):
                    return
                await server.in_thread(partial(shard.acknowledge, progress))
        except StoreUnavailable as error:
            if not is_out_of_memory(error):
                raise
            shard.give_back(progress)
            rows.writers_dirty = True
            self.dirty.set()
            await asyncio.sleep(FULL_PAUSE_S)

    async def _elsewhere(self) -> None:
        server = self._server
        while True:
            places = wanted_positions(server.rows.values())
            if places:
                for rows_id, summed in (await server.in_thread(partial(read_counts, server.store, places))).items():
                    rows = server.rows.get(rows_id)
                    if rows is not None and apply_counts(rows, summed):
                        server.advance(rows)
            await asyncio.sleep(LOOK_EVERY_S)

    async def _tidy(self) -> None:
        server = self._server
        reader = ChunkReader(server.address, clock=server.clock)
        next_s = server.clock.monotonic_s() + TIDY_EVERY_S
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, next_s - server.clock.monotonic_s())):
                        await self.crowded.wait()
                self.crowded.clear()
                timely = server.clock.monotonic_s() >= next_s
                for rows in list(server.rows.values()):
                    if not timely and not rows.garbage_crowded:
                        continue
                    garbage = rows.take_garbage()
                    if len(garbage) and server.serving:  # a former owner's idea of garbage may be wrong
                        await server.in_thread(partial(rows.shard.unlink, reader, garbage))
                    self.dirty.set()
                    rows.watch()
                if timely:
                    next_s = server.clock.monotonic_s() + TIDY_EVERY_S
        finally:
            reader.close()

    async def _snapshot(self) -> None:
        server = self._server
        while True:
            await asyncio.sleep(TIDY_EVERY_S)
            for rows in list(server.rows.values()):
                failed_s = rows.snapshot_failed_s
                again = failed_s is not None and server.clock.monotonic_s() - failed_s > SNAPSHOT_AGAIN_AFTER_S
                if again or rows.shard.snapshot_due():
                    await self.save_snapshot(rows)

    async def _repeat_credit(self) -> None:
        server = self._server
        while True:
            await asyncio.sleep(REPEAT_CREDIT_EVERY_S)
            for rows in list(server.rows.values()):
                rows.repeat_credit()
                server.advance(rows)

    async def _sweep(self) -> None:
        server = self._server
        sweep = OrphanSweep(server, every_s=self._sweep_every_s)
        reader = ChunkReader(server.address, clock=server.clock)
        pause_s = min(FIRST_SWEEP_AFTER_S, self._sweep_every_s)
        try:
            while True:
                await asyncio.sleep(pause_s)
                pause_s = self._sweep_every_s
                try:
                    deleted = await sweep.look(reader)
                except StoreUnavailable as error:
                    _LOG.warning("the look for rows that nobody needs was given up, there will be another: %s", error)
                    continue
                if deleted:
                    _LOG.warning("deleted %d chunks of rows that no item and no writer needed", deleted)
        finally:
            reader.close()
