"""One shard of one table, and of those that share its rows: the index in memory, and its life in Redis.

            log (stream)                                    chunks
    writers ─────────────▶ read ─▶ take ─▶ admit ─▶ index ─▶ unlink what nobody needs
                              ▲                       │
        recover: snapshot + rest of the log           ├─▶ acknowledge: position + credit of writers
                                                      └─▶ snapshot: arrays, then the log is trimmed

Memory methods (`take`, `admit`, `sample`, ...) belong to one thread, and never wait. Methods that talk to Redis (`read`,
`acknowledge`, `unlink`, `save_snapshot`, `recover`, `drop`) touch no index and may run in other threads: what they need of the
index is captured first (`progress`, `snapshot`). Everything written is guarded by the lease, so that of two processes for one
shard only the owner writes.

Inserts wait in line until the limiters admit them. Updates and deletes are applied as they are read; what they say of keys that are
not known yet waits in line behind the inserts that may bring them. Nothing is removed from the log before a snapshot holds it, so
a shard that dies loses nothing.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch
from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.group import TableGroup
from rollstream.replay.group_state import CapturedState, SnapshotRoom, capture, load_snapshot
from rollstream.replay.log import DeleteEntry, InsertEntry, UpdateEntry, decode_delete, decode_insert, decode_update
from rollstream.replay.packed import PackedArrays
from rollstream.replay.position import Position, read_position
from rollstream.replay.samples import SampledItems, SampleReply, SampleRequest
from rollstream.replay.snapshots import Snapshots
from rollstream.replay.spec import TableSpec
from rollstream.replay.sweep import sweep_table
from rollstream.replay.table import Table
from rollstream.replay.table_memory import SNAPSHOT_EVERY_ITEMS
from rollstream.replay.table_state import import_items
from rollstream.store import ChunkReader, Credit, Store, chunk_prefix, keys

__all__ = ["Guard", "LogEntries", "Progress", "Snapshot", "TableShard"]

_LOG = logging.getLogger("rollstream.replay")
READ_ENTRIES = 128

LogEntries = Sequence[tuple[bytes, Mapping[bytes, bytes]]]


class Guard(Protocol):
    """Executes commands only while the shard is ours (`rollstream.store.Lease.guarded`)."""

    def __call__(self, what: str, fill: Any) -> list[Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is to be acknowledged: where the shard stands, and the newest wholly admitted sequence of each writer."""

    position: Position
    granted: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state at one moment, its number, and the log id `after` which entries are not in it."""

    state: CapturedState
    generation: int
    after: str


class TableShard:
    """One shard of one table in one process, and of the tables that share its rows.

    Args:
        table_id: of the table that the rows belong to.
        guard: see `Guard`.
        seed: of the random selectors.

    Attributes:
        tables: by table id; the first is the one that the rows belong to.
    """

    def __init__(self, store: Store, *, table_id: str, shard: int, spec: TableSpec, guard: Guard, seed: int = 0) -> None:
        self.table_id = table_id
        self.shard = shard
        self.group = TableGroup(spec, shard=shard, seed=seed)
        self.tables: dict[str, Table] = {table_id: self.group.primary}
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
        self._line: deque[tuple[bytes, InsertEntry | UpdateEntry | DeleteEntry]] = deque()
        self._admitted_id = "0-0"
        self._generation = 0
        self._granted: dict[int, int] = {}
        self._items_since_snapshot = 0

    # --- memory: one thread ----------------------------------------------------------------------------------------------

    @property
    def table(self) -> Table:
        """The table that the rows belong to."""
        return self.group.primary

    def attach(self, table_id: str, spec: TableSpec) -> Table:
        """Add a table that shares the rows; refuses one whose rows are others."""
        table = self.group.attach(spec)
        self.tables[table_id] = table
        return table

    def detach(self, table_id: str) -> None:
        """Drop a table that shares the rows, with its items."""
        table = self.tables.pop(table_id)
        self.group.detach(table.spec.name)

    @property
    def waiting_entries(self) -> int:
        """Insert entries that are read and not wholly admitted."""
        return sum(isinstance(entry, InsertEntry) for _, entry in self._line)

    @property
    def waiting_writers(self) -> tuple[int, ...]:
        """Writers of these entries, in order, each once."""
        return tuple(dict.fromkeys(entry.writer for _, entry in self._line if isinstance(entry, InsertEntry)))

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
            self._change(entry_id, update)
            self._items_since_snapshot += len(update.keys) // 2
        elif kind == b"d":
            self._change(entry_id, decode_delete(buffer))
        else:
            raise SchemaMismatch(f"log entry has the unknown kind {kind!r}; this release knows i, u and d")

    def _change(self, entry_id: bytes, entry: UpdateEntry | DeleteEntry) -> None:
        reset = entry.reset if isinstance(entry, DeleteEntry) else ""
        if reset or not self._line:
            self.group.change(entry)
            self._drop_waiting(reset)
            return
        found = self.group.update(entry) if isinstance(entry, UpdateEntry) else self.group.delete(entry)
        if found.all():
            return
        if isinstance(entry, UpdateEntry):
            rest: UpdateEntry | DeleteEntry = UpdateEntry(keys=entry.keys[~found], priority=entry.priority[~found])
        else:
            rest = DeleteEntry(keys=entry.keys[~found], missing=entry.missing)
        self._line.append((entry_id, rest))

    def _drop_waiting(self, name: str) -> None:
        """A table was emptied: items for it that were written before and still wait are dropped too, as a restart does."""
        for place, (entry_id, each) in enumerate(self._line):
            if isinstance(each, InsertEntry) and each is not self.group.admitting:
                self._line[place] = (entry_id, self.group.without_items_of(name, each))

    def _head(self) -> tuple[bytes, InsertEntry] | None:
        """The insert entry that is next, after the changes that stand before it in line are made; None when none is left."""
        while self._line:
            entry_id, entry = self._line[0]
            if isinstance(entry, InsertEntry):
                return entry_id, entry
            self._line.popleft()
            self.group.change(entry)
        return None

    def admit(self, *, about_items: int = 8192) -> int:
        """Insert what the limiters allow now, but not many more than `about_items` at once; returns how many."""
        inserted = 0
        while inserted < about_items and (head := self._head()) is not None:
            entry_id, entry = head
            if self.group.admitting is None and not self.group.begin(entry):
                self._finish(entry_id, entry)
                continue
            inserted += self.group.admit()
            if self.group.admitting is not None:
                break
            self._finish(entry_id, entry)
        self._items_since_snapshot += inserted
        return inserted

    def _finish(self, entry_id: bytes, entry: InsertEntry) -> None:
        self._line.popleft()
        self._admitted_id = entry_id.decode()
        self._granted[entry.writer] = max(entry.sequence, self._granted.get(entry.writer, 0))

    def sample(self, table: Table, request: SampleRequest) -> SampleReply | None:
        """As many of the batches that are asked for as the limiter allows now; None when not even the first, though one is."""
        if request.consumed:
            table.limiter.consume(request.consumed)
        table.see_version(request.learner_version)
        counts = request.counts
        if not len(counts):
            return _reply(table, request, counts, SampledItems.nothing(table_items=table.sampler.sampleable))
        if not table.can_sample(int(counts[0])):
            return None
        ends = counts.cumsum(dtype=np.int64)
        batches = len(counts)
        while batches > 1 and not table.can_sample(int(ends[batches - 1])):
            batches -= 1
        total, taken = int(ends[batches - 1]), counts[:batches].tolist()
        items = table.sample(total, counted=not request.count_when_consumed, batches=taken)
        return _reply(table, request, counts[:batches], items)

    def insert_waits_for(self) -> str:
        """For what the first entry in line waits, for people; empty when there is none or it need not."""
        return self.group.insert_waits_for() if self._line else ""

    def progress(self) -> Progress:
        """What has been admitted since the last time, to be acknowledged."""
        granted, self._granted = self._granted, {}
        half = self.group.admitting is not None
        counts = {
            name: table.limiter.counts(size=table.size, wanting=table.admitting) for name, table in self.group.tables.items()
        }
        position = Position(
            log_id=self._line[0][0].decode() if half else self._admitted_id,
            offsets=self.group.admitted if half else {},
            generation=self._generation,
            waits=self.insert_waits_for(),
            tables=counts,
            inserted=self.table.limiter.inserted,
            sampled=self.table.limiter.sampled,
            size=self.table.size,
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
        streams = self.group.rows.streams
        for writer in writers:
            if writer in streams:
                self._granted[writer] = max(streams[writer].sequence, self._granted.get(writer, 0))

    def snapshot_due(self) -> bool:
        """Whether the log since the last snapshot has grown so long that one pays. Never while an entry is half admitted."""
        if self.group.admitting is not None:
            return False
        return self._items_since_snapshot >= max(SNAPSHOT_EVERY_ITEMS, self.table.size // 2)

    def worth_a_snapshot(self) -> bool:
        """Whether a snapshot would save a restart reading anything."""
        return self.group.admitting is None and self._items_since_snapshot > 0

    def snapshot(self, room: SnapshotRoom | None = None) -> Snapshot:
        """The state now, to be saved with `save_snapshot`; `room` for it makes it faster (`group_state.room_for`)."""
        state = capture(self.group, room)
        self._items_since_snapshot = 0
        self._generation += 1
        return Snapshot(state=state, generation=self._generation, after=self._admitted_id if self._line else self.cursor)

    def replace(self, state: PackedArrays, *, table_id: str = "", keep_limiter: bool = False) -> int:
        """Put restored items in the place of what a table holds; what stands in line goes in first. Returns how many."""
        while (head := self._head()) is not None:
            entry_id, entry = head
            if self.group.admitting is not None or self.group.begin(entry):
                self.group.admit(at_least=entry.items)
            self._finish(entry_id, entry)
        table = self.tables[table_id or self.table_id]
        count = import_items(self.group, table.spec.name, state)
        if not keep_limiter:
            table.limiter.make_sampleable(size=table.size)
        return count

    # --- Redis: any thread -----------------------------------------------------------------------------------------------

    def recover(self, sharing: Mapping[str, TableSpec] | None = None) -> None:
        """Build the index from the newest snapshot and the log since; whatever was admitted once is admitted again.

        Args:
            sharing: tables that share the rows, by table id.
        """
        for table_id, spec in (sharing or {}).items():
            self.attach(table_id, spec)
        position = read_position(self._store, table_id=self.table_id, shard=self.shard) or Position()
        found = self._snapshots.load()
        if found is not None:
            load_snapshot(self.group, found)
            self._generation = int(found.facts["generation"])
            self.cursor = self._admitted_id = str(found.facts["after"])
        elif position.generation:
            self._start_without_snapshot(position)
        limit = _number(position.log_id)
        while entries := self._read_some():
            for entry in entries:
                self.take([entry])
                self._admit_again(limit, position.offsets)
        if found is not None or not position.generation:
            for name, counts in position.tables.items():
                if name in self.group.tables:
                    limiter = self.group.tables[name].limiter
                    limiter.sampled = max(limiter.sampled, counts.sampled)
        self._granted = {writer: streams.sequence for writer, streams in self.group.rows.streams.items()}

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

    def _admit_again(self, limit: tuple[int, int], offsets: Mapping[str, int]) -> None:
        while self.group.admitting is None and (head := self._head()) is not None and _number(head[0].decode()) <= limit:
            entry_id, entry = head
            whole = _number(entry_id.decode()) < limit or not offsets
            if self.group.begin(entry):
                self.group.admit(at_least=entry.items if whole else dict(offsets))
                if self.group.admitting is not None:
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

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Write a snapshot, then trim the log to what is not in it."""
        packed = snapshot.state.packed()
        facts = {**packed.facts, "generation": snapshot.generation, "after": snapshot.after}
        self._snapshots.save(PackedArrays(facts=facts, arrays=packed.arrays))

    def unlink(self, reader: ChunkReader, garbage: ChunkAddresses) -> int:
        """Delete chunks that nobody needs; returns how many were there."""
        return reader.unlink(self._prefix, garbage.writer, garbage.env, garbage.chunk_no)

    def drop(self) -> int:
        """Delete everything of this shard in Redis; returns the number of keys."""
        return sweep_table(self._store, table_id=self.table_id, shard=self.shard, everything=True)


def _reply(table: Table, request: SampleRequest, counts: npt.NDArray[np.uint32], items: SampledItems) -> SampleReply:
    return SampleReply(
        counts=counts,
        items=items,
        mass=table.sampler.mass,
        newest_version=table.newest_version,
        min_probability=table.sampler.min_probability if request.wants_min_probability else 0.0,
    )


def _number(stream_id: str) -> tuple[int, int]:
    milliseconds, _, number = stream_id.partition("-")
    return int(milliseconds), int(number or 0)
