"""One row space in a running shard, with all tables over it: admits what was read, knows who waits to write and what Redis must
be told.

Lives in the event loop's thread; nothing here waits.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from dataclasses import dataclass

from rollstream.clock import Clock
from rollstream.metrics import Waits
from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.shard import LogEntries, Progress, TableShard
from rollstream.replay.spec import TableSpec
from rollstream.replay.table_memory import GARBAGE_LEAST_BYTES, garbage_chunks_allowed
from rollstream_replay.served_table import ServedTable

__all__ = ["Blocked", "ServedRows", "WaitingWriter"]

_LOG = logging.getLogger("rollstream.replay")
GRANT_AGAIN_WITHIN_S = 60.0
"""Writers heard of within this time get their credit again now and then, in case Redis lost it."""
FORGET_WRITER_AFTER_S = 1800.0
"""A writer silent for this long is gone; its last few rows are let go. Longer than any pause of an experiment's actor."""
BLOCKED_AFTER_S = 2.0
"""Writers and samplers both waiting for this long is a fault, and is told as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingWriter:
    """A writer with rows in line that are not admitted, and since when."""

    writer: int
    waited_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Writers and samplers of a table wait at the same time: for how long, and for what each."""

    seconds: float
    writers: str
    samplers: str


class ServedRows:
    """A `TableShard` and those who wait for it.

    Attributes:
        tables: by table id; the first is the one that the rows belong to.
        writers_dirty, samples_dirty: there is credit or a reason for writers to tell; numbers have changed.
        orphans_swept: chunks that were deleted because nobody needed them.
        snapshot_failed_s: when the last snapshot could not be saved; None when it was.
        writers_near_bound: a writer has half of what it may have in the log admitted, and not been told yet.
        writing: held while something of these rows is written, so that nothing is written after they were dropped.
    """

    def __init__(self, shard: TableShard, *, clock: Clock, waits: Waits) -> None:
        self.shard = shard
        self.tables: dict[str, ServedTable] = {}
        self.writers_dirty = True
        self.samples_dirty = False
        self.orphans_swept = 0
        self.snapshot_failed_s: float | None = None
        self.writing = asyncio.Lock()
        self.writers_near_bound = False
        self._fresh_chunks = 0
        self._least_garbage = GARBAGE_LEAST_BYTES // shard.table.spec.chunk_memory_bytes(shard.table_id)
        self._told: dict[int, int] = {}
        self._clock = clock
        self._waits = waits
        self._heard_s: dict[int, float] = {}
        self._waiting_since_s: dict[int, float] = {}
        self._blocked_since_s: dict[str, float] = {}
        self._blocked_logged: set[str] = set()
        self._fresh_garbage: list[ChunkAddresses] = []
        self._old_garbage: list[ChunkAddresses] = []
        self._writers_wait = ExitStack()
        self._writers_waiting = False
        for table_id in shard.tables:
            self._serve(table_id)

    @property
    def table_id(self) -> str:
        """Id of the table that the rows belong to."""
        return self.shard.table_id

    def attach(self, table_id: str, spec: TableSpec) -> ServedTable:
        """Serve one more table over these rows; refuses one whose rows are others."""
        self.shard.attach(table_id, spec)
        return self._serve(table_id)

    def detach(self, table_id: str, error: Exception) -> None:
        """Drop a table that shares the rows, and tell its samplers."""
        self.tables.pop(table_id).close(error)
        self.shard.detach(table_id)

    def _serve(self, table_id: str) -> ServedTable:
        table = ServedTable(self.shard, table_id=table_id, clock=self._clock, waits=self._waits, changed=self._numbers_changed)
        self.tables[table_id] = table
        return table

    def _numbers_changed(self) -> None:
        self.samples_dirty = True

    # --- inserts ---------------------------------------------------------------------------------------------------------

    def take(self, entries: LogEntries) -> None:
        """Take up entries of the log."""
        self.shard.take(entries)

    def advance(self) -> bool:
        """Admit what may be admitted and serve samplers with it; True when there may be more at once."""
        shard = self.shard
        inserted = shard.admit()
        granted = shard.newly_admitted_writers()
        if granted:
            now_s = self._clock.monotonic_s()
            self._heard_s.update(dict.fromkeys(granted, now_s))
            self.writers_dirty = True
            self._look_at_bounds(granted)
        for table in self.tables.values():
            if table.samplers:
                table.serve_waiting()
        if shard.group.rows.references.garbage_waiting:
            self._fresh_garbage.append(shard.group.take_garbage())
            self._fresh_chunks += len(self._fresh_garbage[-1])
        self._record_waiting_writers()
        return inserted > 0

    def settle(self) -> None:
        """Bring selectors up to date with what was inserted, before the next sampler has to wait for it."""
        for table in self.tables.values():
            table.settle()

    def _look_at_bounds(self, granted: list[int]) -> None:
        streams, half = self.shard.group.rows.streams, max(1, self.shard.table.spec.unread_entries // 2)
        for writer in granted:
            if writer in streams and streams[writer].sequence - self._told.get(writer, 0) >= half:
                self.writers_near_bound = True

    def progress(self) -> Progress:
        """What is to be acknowledged now."""
        progress = self.shard.progress()
        self._told.update(progress.granted)
        self.writers_dirty = self.samples_dirty = self.writers_near_bound = False
        return progress

    def _record_waiting_writers(self) -> None:
        waiting = bool(self.shard.insert_waits_for())
        if waiting and not self._writers_waiting:
            wait = self._waits.waiting(who=f"writers of table {self.table_id}", for_whom="samplers (limiter)")
            self._writers_wait.enter_context(wait)
            self.writers_dirty = True  # the reason is for their eyes
        elif self._writers_waiting and not waiting:
            self._writers_wait.close()
        self._writers_waiting = waiting

    def waiting_writers(self) -> tuple[WaitingWriter, ...]:
        """Writers whose rows stand in line, the first first; none when the line only waits for its turn."""
        self._note_waiting_writers()
        now_s = self._clock.monotonic_s()
        return tuple(WaitingWriter(writer=writer, waited_s=now_s - since_s) for writer, since_s in self._waiting_since_s.items())

    def _note_waiting_writers(self) -> None:
        now_s = self._clock.monotonic_s()
        writers = self.shard.waiting_writers if self.shard.insert_waits_for() else ()
        self._waiting_since_s = {writer: self._waiting_since_s.get(writer, now_s) for writer in writers}

    def silent_for(self, writer: int) -> float:
        """Seconds since something of this writer was admitted; infinite when that never was. 0 while it has rows in line."""
        if writer in self.shard.waiting_writers:
            return 0.0
        heard_s = self._heard_s.get(writer)
        return float("inf") if heard_s is None else self._clock.monotonic_s() - heard_s

    def close(self, error: Exception) -> None:
        """Tell those who wait that there is no use in it."""
        for table in self.tables.values():
            table.close(error)
        self._writers_wait.close()

    # --- upkeep ----------------------------------------------------------------------------------------------------------

    def take_garbage(self) -> ChunkAddresses:
        """Chunks that nobody needs since the call before the last: a client may still be fetching what it sampled just now."""
        garbage, self._old_garbage = self._old_garbage, self._fresh_garbage
        self._fresh_garbage, self._fresh_chunks = [], 0
        return ChunkAddresses.concatenate(garbage)

    @property
    def garbage_crowded(self) -> bool:
        """Whether so much is to be deleted that it must not wait for its time."""
        held = self.shard.group.rows.references.held
        return self._fresh_chunks > garbage_chunks_allowed(held, least_chunks=self._least_garbage)

    def repeat_credit(self) -> None:
        """Give recent writers their credit once more, and forget those that are gone."""
        now_s = self._clock.monotonic_s()
        recent = [writer for writer, heard_s in self._heard_s.items() if now_s - heard_s < GRANT_AGAIN_WITHIN_S]
        if recent:
            self.shard.grant_again(recent)
            self.writers_dirty = True
        for writer in self.shard.group.rows.streams:
            self._heard_s.setdefault(writer, now_s)
        for writer in [writer for writer, heard_s in self._heard_s.items() if now_s - heard_s > FORGET_WRITER_AFTER_S]:
            self.shard.group.forget_writer(writer)
            del self._heard_s[writer]
            self._told.pop(writer, None)

    def blocked(self, table_id: str) -> Blocked | None:
        """Whether writers and samplers of a table both wait, since when and for what."""
        table = self.tables[table_id]
        since_s = self._blocked_since_s.get(table_id)
        reason = self.shard.insert_waits_for()
        if since_s is None or not reason or not table.samplers:
            return None
        return Blocked(
            seconds=self._clock.monotonic_s() - since_s,
            writers=reason,
            samplers=table.table.sample_waits_for(table.samplers[0].batch_items) or "waiting behind other samplers",
        )

    def watch(self) -> None:
        """Writers and samplers must never both wait: if they do, say so, with both reasons."""
        self._note_waiting_writers()
        now_s = self._clock.monotonic_s()
        reason = self.shard.insert_waits_for()
        for table_id, table in self.tables.items():
            if not reason or not table.samplers:
                self._blocked_since_s.pop(table_id, None)
                self._blocked_logged.discard(table_id)
                continue
            since_s = self._blocked_since_s.setdefault(table_id, now_s)
            blocked = self.blocked(table_id)
            if blocked is None or now_s - since_s < BLOCKED_AFTER_S or table_id in self._blocked_logged:
                continue
            self._blocked_logged.add(table_id)
            _LOG.error(
                "table %s: both sides wait for each other; writers: %s; a sampler of %d items: %s; change the limiter with PATCH",
                table_id,
                blocked.writers,
                table.samplers[0].batch_items,
                blocked.samplers,
            )
