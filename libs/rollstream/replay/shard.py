"""One shard of one table: the index in memory, and its life in Redis.

            log (stream)                                    chunks
    writers ─────────────▶ read ─▶ take ─▶ admit ─▶ index ─▶ unlink what nobody needs
                              ▲                       │
        recover: snapshot + rest of the log           ├─▶ acknowledge: position + credit of writers
                                                      └─▶ snapshot: arrays, then the log is trimmed

Memory methods (`take`, `admit`, `sample`, ...) belong to one thread, and never wait. Methods that talk to Redis (`read`,
`acknowledge`, `unlink`, `save_snapshot`, `recover`, `drop`) touch no index and may run in other threads: what they need of the
index is captured first (`progress`, `snapshot`). Everything written is guarded by the lease, so that of two processes for one
shard only the owner writes.

Updates and deletes are applied as they are read; inserts wait in line until the limiter admits them. They are not removed from
the log before a snapshot holds them, so a shard that dies loses nothing.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rollstream.errors import SchemaMismatch
from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.log import InsertEntry, decode_delete, decode_insert, decode_update
from rollstream.replay.packed import PackedArrays
from rollstream.replay.position import Position, read_position
from rollstream.replay.samples import SampledItems
from rollstream.replay.snapshots import Snapshots
from rollstream.replay.spec import TableSpec
from rollstream.replay.sweep import sweep_table
from rollstream.replay.table import Table
from rollstream.replay.table_state import clear, load_state, table_state
from rollstream.store import ChunkReader, Credit, Store, chunk_prefix, keys

__all__ = ["Guard", "LogEntries", "Progress", "TableShard"]

_LOG = logging.getLogger("rollstream.replay")
READ_ENTRIES = 128
SNAPSHOT_EVERY_ITEMS = 50_000
"""Log items after which a snapshot pays: it costs about twice what they cost, and bounds the log that a restart reads."""

LogEntries = Sequence[tuple[bytes, Mapping[bytes, bytes]]]


class Guard(Protocol):
    """Executes commands only while the shard is ours (`rollstream.store.Lease.guarded`)."""

    def __call__(self, what: str, fill: Any) -> list[Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is to be acknowledged: where the shard stands, and the newest wholly admitted sequence of each writer."""

    position: Position
    granted: Mapping[int, int]


class TableShard:
    """One shard of one table in one process.

    Args:
        guard: see `Guard`.
        seed: of the random selectors.
    """

    def __init__(self, store: Store, *, table_id: str, shard: int, spec: TableSpec, guard: Guard, seed: int = 0) -> None:
        self.table_id = table_id
        self.shard = shard
        self.seed = seed
        self.table = Table(spec, shard=shard, seed=seed)
        self.cursor = "0-0"
        self.entries_bad = 0
        self._store = store
        self._guard = guard
        self._prefix = chunk_prefix(table_id, shard)
        self._snapshots = Snapshots(store, table_id=table_id, shard=shard, guard=guard)
        self._credit = Credit(
            store,
            credit_key=keys.table_credit(table_id, shard),
            wake_key=lambda writer: keys.table_wake(table_id, shard, writer),
        )
        self._line: deque[tuple[bytes, InsertEntry]] = deque()
        self._admitted_id = "0-0"
        self._generation = 0
        self._granted: dict[int, int] = {}
        self._items_since_snapshot = 0

    # --- memory: one thread ----------------------------------------------------------------------------------------------

    @property
    def waiting_entries(self) -> int:
        """Insert entries that are read and not wholly admitted."""
        return len(self._line)

    def take(self, entries: LogEntries) -> None:
        """Take up log entries in order: updates and deletes at once, inserts into the line. Unreadable ones are counted."""
        for entry_id, fields in entries:
            self.cursor = entry_id.decode()
            for kind, buffer in fields.items():
                try:
                    self._take_one(entry_id, kind, buffer)
                except SchemaMismatch as error:
                    self.entries_bad += 1
                    _LOG.error("table %s shard %d: log entry %s skipped: %s", self.table_id, self.shard, self.cursor, error)

    def _take_one(self, entry_id: bytes, kind: bytes, buffer: bytes) -> None:
        if kind == b"i":
            self._line.append((entry_id, decode_insert(buffer)))
        elif kind == b"u":
            update = decode_update(buffer)
            self.table.update(update)
            self._items_since_snapshot += len(update.keys) // 2
        elif kind == b"d":
            self.table.delete(decode_delete(buffer))
        else:
            raise SchemaMismatch(f"log entry has the unknown kind {kind!r}; this release knows i, u and d")

    def admit(self, *, about_items: int = 8192) -> int:
        """Insert what the limiter allows now, but not many more than `about_items` at once; returns how many."""
        inserted = 0
        while self._line and inserted < about_items:
            entry_id, entry = self._line[0]
            if self.table.admitting is None and not self.table.begin(entry):
                self._finish(entry_id, entry)
                continue
            inserted += self.table.admit()
            if self.table.admitting is not None:
                break
            self._finish(entry_id, entry)
        self._items_since_snapshot += inserted
        return inserted

    def _finish(self, entry_id: bytes, entry: InsertEntry) -> None:
        self._line.popleft()
        self._admitted_id = entry_id.decode()
        self._granted[entry.writer] = max(entry.sequence, self._granted.get(entry.writer, 0))

    def sample(self, *, batches: int, batch_items: int) -> SampledItems | None:
        """Up to `batches` batches of `batch_items`, as many as the limiter allows now; None when not even one."""
        if not self.table.can_sample(batch_items):
            return None
        while batches > 1 and not self.table.can_sample(batches * batch_items):
            batches -= 1
        return self.table.sample(batches * batch_items)

    def insert_waits_for(self) -> str:
        """For what the first entry in line waits, for people; empty when there is none or it need not."""
        return self.table.limiter.insert_waits_for(size=self.table.size) if self._line else ""

    def progress(self) -> Progress:
        """What has been admitted since the last time, to be acknowledged."""
        granted, self._granted = self._granted, {}
        half = self.table.admitting is not None
        position = Position(
            log_id=self._line[0][0].decode() if half else self._admitted_id,
            offset=self.table.admitted if half else -1,
            generation=self._generation,
            inserted=self.table.limiter.inserted,
            sampled=self.table.limiter.sampled,
            size=self.table.size,
            waits=self.insert_waits_for(),
        )
        return Progress(position=position, granted=granted)

    def newly_admitted_writers(self) -> list[int]:
        """Writers with credit that was not handed to `progress` yet."""
        return list(self._granted)

    def give_back(self, progress: Progress) -> None:
        """What could not be acknowledged is acknowledged with the next progress."""
        for writer, sequence in progress.granted.items():
            self._granted[writer] = max(sequence, self._granted.get(writer, 0))

    def grant_again(self, writers: Iterable[int]) -> None:
        """Credit of these writers is given once more: after a crash Redis may have lost what was given last."""
        for writer in writers:
            if writer in self.table.streams:
                self._granted[writer] = max(self.table.streams[writer].sequence, self._granted.get(writer, 0))

    def snapshot_due(self) -> bool:
        """Whether the log since the last snapshot has grown so long that one pays. Never while an entry is half admitted."""
        if self.table.admitting is not None:
            return False
        return self._items_since_snapshot >= max(SNAPSHOT_EVERY_ITEMS, self.table.size // 2)

    def worth_a_snapshot(self) -> bool:
        """Whether a snapshot would save a restart reading anything."""
        return self.table.admitting is None and self._items_since_snapshot > 0

    def snapshot(self) -> PackedArrays:
        """The state now, to be saved with `save_snapshot`; it goes with the position `after` which the log is read again."""
        state = table_state(self.table)
        self._items_since_snapshot = 0
        self._generation += 1
        after = self._admitted_id if self._line else self.cursor
        return PackedArrays(facts={**state.facts, "generation": self._generation, "after": after}, arrays=state.arrays)

    def replace(self, state: PackedArrays) -> int:
        """Put restored items in the place of what the table holds; what stands in line goes in first. Returns how many."""
        while self._line:
            entry_id, entry = self._line[0]
            if self.table.admitting is not None or self.table.begin(entry):
                self.table.admit(at_least=entry.items)
            self._finish(entry_id, entry)
        clear(self.table)
        load_state(self.table, state)
        self.table.limiter.make_sampleable()
        return self.table.size

    # --- Redis: any thread -----------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Build the index from the newest snapshot and the log since; whatever was admitted once is admitted again."""
        position = read_position(self._store, table_id=self.table_id, shard=self.shard) or Position()
        found = self._snapshots.load()
        if found is not None:
            load_state(self.table, found)
            self._generation = int(found.facts["generation"])
            self.cursor = self._admitted_id = str(found.facts["after"])
        elif position.generation:
            self._start_without_snapshot(position)
        limit = _number(position.log_id)
        while entries := self._read_some():
            for entry in entries:
                self.take([entry])
                self._admit_again(limit, position.offset)
        if found is not None or not position.generation:
            self.table.limiter.sampled = max(self.table.limiter.sampled, position.sampled)
        self._granted = {writer: streams.sequence for writer, streams in self.table.streams.items()}

    def _start_without_snapshot(self, position: Position) -> None:
        """The snapshot is lost though the log was trimmed for it: what is left in Redis belongs to no item."""
        swept = sweep_table(self._store, table_id=self.table_id, shard=self.shard)
        self.table.counters["snapshots_lost"] += 1
        _LOG.error(
            "table %s shard %d: snapshot %d is lost; starting without its items, %d rows without an item were deleted",
            self.table_id,
            self.shard,
            position.generation,
            swept,
        )
        self._generation = position.generation
        self.cursor = self._admitted_id = "0-0"

    def _admit_again(self, limit: tuple[int, int], offset: int) -> None:
        while self._line and self.table.admitting is None and _number(self._line[0][0].decode()) <= limit:
            entry_id, entry = self._line[0]
            whole = _number(entry_id.decode()) < limit or offset < 0
            if self.table.begin(entry):
                self.table.admit(at_least=entry.items if whole else offset)
                if self.table.admitting is not None:
                    return
            self._finish(entry_id, entry)

    def _read_some(self) -> LogEntries:
        def operation(client: Any) -> LogEntries:
            reply = client.xread({keys.table_log(self.table_id, self.shard): self.cursor}, count=READ_ENTRIES)
            entries: LogEntries = reply[0][1] if reply else []
            return entries

        return self._store.run(f"read the log of table {self.table_id}", operation)

    def acknowledge(self, progress: Progress) -> None:
        """Write down where the shard stands, and give writers their credit."""

        def fill(pipeline: Any) -> None:
            pipeline.hset(keys.table_position(self.table_id, self.shard), mapping=progress.position.fields())
            for writer, sequence in progress.granted.items():
                self._credit.grant(pipeline, writer, sequence)

        self._guard(f"acknowledge inserts of table {self.table_id}", fill)

    def save_snapshot(self, snapshot: PackedArrays) -> None:
        """Write a snapshot, then trim the log to what is not in it."""
        self._snapshots.save(snapshot)

    def unlink(self, reader: ChunkReader, garbage: ChunkAddresses) -> int:
        """Delete chunks that nobody needs; returns how many were there."""
        return reader.unlink(self._prefix, garbage.writer, garbage.env, garbage.chunk_no)

    def drop(self) -> int:
        """Delete everything of this shard in Redis; returns the number of keys."""
        return sweep_table(self._store, table_id=self.table_id, shard=self.shard, everything=True)


def _number(stream_id: str) -> tuple[int, int]:
    milliseconds, _, number = stream_id.partition("-")
    return int(milliseconds), int(number or 0)
