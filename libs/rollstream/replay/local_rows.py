"""One shard of a row space that lives in the user's own process: reads its log, admits, and sees to its upkeep.

Called under the lock of `LocalShards`. Nothing waits except for Redis; a snapshot is captured here and saved in a thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import Any

from rollstream.clock import Clock
from rollstream.errors import StoreUnavailable
from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.shard import LogEntries, Progress, TableShard
from rollstream.replay.table_memory import GARBAGE_LEAST_BYTES, garbage_chunks_allowed
from rollstream.replay.uninterrupted import uninterrupted
from rollstream.store import ChunkReader, keys
from rollstream.store.retry import is_out_of_memory

__all__ = ["LocalRows", "read_logs"]

TIDY_EVERY_S = 0.5
"""Between two deletions of rows; rows go at the second after they lost their last item, for somebody may be fetching them."""
ACKNOWLEDGE_EVERY_S = 1.0
"""Writers that wait are acknowledged at once; otherwise this often, so that a crash repeats little."""
FULL_PAUSE_S = 1.0
"""While Redis is full, how long until what needs room is tried again."""
_LOG = logging.getLogger("rollstream.replay")


class LocalRows:
    """A `TableShard` and what is due for it."""

    def __init__(self, shard: TableShard, *, reader: ChunkReader, saver: Executor, clock: Clock) -> None:
        self.shard = shard
        self._reader = reader
        self._saver = saver
        self._clock = clock
        self._saving: Future[None] | None = None
        self._told_last: tuple[int | str, ...] = ()
        self._untold: Progress | None = None  # an interrupt may come at any moment: credit must not be lost with it
        self._full_until_s = float("-inf")
        self._fresh_garbage: list[ChunkAddresses] = []
        self._old_garbage: list[ChunkAddresses] = []
        self._fresh_chunks = 0
        self._least_garbage = GARBAGE_LEAST_BYTES // shard.table.spec.chunk_memory_bytes(shard.table_id)
        self._tidied_s = self._acknowledged_s = clock.monotonic_s()

    @property
    def log_key(self) -> str:
        return keys.table_log(self.shard.table_id, self.shard.shard)

    def take(self, entries: LogEntries) -> None:
        """Take up what was read of the log, and admit what may be."""
        if entries:
            self.shard.take(entries)
        self.admit()

    def admit(self) -> None:
        """Admit everything that the limiters allow now."""
        while self.shard.waiting_entries and self.shard.admit():
            pass
        garbage = self.shard.group.take_garbage()
        if len(garbage):
            self._fresh_garbage.append(garbage)
            self._fresh_chunks += len(garbage)

    def upkeep(self, *, acknowledge: bool) -> None:
        """Whatever is due: deleting rows, credit for writers, a snapshot. While Redis is full, what needs room waits."""
        now_s = self._clock.monotonic_s()
        allowed = garbage_chunks_allowed(self.shard.group.rows.references.held, least_chunks=self._least_garbage)
        if now_s - self._tidied_s > TIDY_EVERY_S or self._fresh_chunks > allowed:
            self._tidied_s = now_s
            self._tidy()
        if now_s < self._full_until_s:
            return
        told = self._told()
        changed = told != self._told_last or self._untold is not None or bool(self.shard.newly_admitted_writers())
        if changed and (acknowledge or now_s - self._acknowledged_s > ACKNOWLEDGE_EVERY_S):
            if not self._unless_full(self._acknowledge):
                return
            self._told_last, self._acknowledged_s = told, now_s
        if self._saving is not None and self._saving.done():
            self._unless_full(self._end_saving)
        if self._saving is None and self.shard.snapshot_due():
            self._saving = self._saver.submit(self.shard.save_snapshot, self.shard.snapshot())

    def save(self) -> None:
        """Save a snapshot now, if there is anything new, and write down where the shard stands; unless Redis is full."""
        self._unless_full(self._end_saving)
        if self.shard.worth_a_snapshot():
            self._unless_full(lambda: self.shard.save_snapshot(self.shard.snapshot()))
        self._unless_full(self._acknowledge)

    def _unless_full(self, work: Callable[[], None]) -> bool:
        """Do what needs room in Redis; False when there is none now. Nothing is lost by that: the log has everything."""
        try:
            work()
        except StoreUnavailable as error:
            if not is_out_of_memory(error):
                raise
            self._full_until_s = self._clock.monotonic_s() + FULL_PAUSE_S
            _LOG.warning("table %s: Redis is full, so inserts are not acknowledged: %s", self.shard.table_id, error)
            return False
        return True

    def _end_saving(self) -> None:
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.result()

    def drop(self) -> int:
        """Delete everything of it in Redis."""
        self._unless_full(self._end_saving)
        return self.shard.drop()

    def _told(self) -> tuple[int | str, ...]:
        """What others read of the position: why writers wait, and counts."""
        tables = self.shard.tables.values()
        return (self.shard.insert_waits_for(), *(table.limiter.sampled for table in tables))

    def _acknowledge(self) -> None:
        with uninterrupted():
            if self._untold is not None:
                self.shard.give_back(self._untold)
            self._untold = self.shard.progress()
        self.shard.acknowledge(self._untold)
        self._untold = None

    def _tidy(self) -> None:
        garbage, self._old_garbage, self._fresh_garbage = self._old_garbage, self._fresh_garbage, []
        self._fresh_chunks = 0
        if garbage:
            self.shard.unlink(self._reader, ChunkAddresses.concatenate(garbage))


def read_logs(client: Any, *, cursors: Mapping[str, str], count: int) -> dict[str, LogEntries]:
    """What came into several logs since the cursors, without waiting."""
    reply = client.xread(dict(cursors), count=count)
    return {name.decode(): entries for name, entries in reply}
