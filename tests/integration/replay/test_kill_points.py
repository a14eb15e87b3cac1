"""A shard that is killed at any point comes back as the table that applied every acknowledged flush exactly once.

The shard is real, Redis too; only its death is acted: whatever it was about to send is not sent, and its memory is thrown away.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollstream.clock import SystemClock
from rollstream.replay.log import DeleteEntry, InsertEntry, UpdateEntry, encode_delete, encode_insert, encode_update
from rollstream.replay.selector_spec import Fifo, Prioritized, Uniform
from rollstream.replay.shard import TableShard
from rollstream.replay.spec import TableSpec
from rollstream.store import Address, ChunkReader, ChunkWriter, Store, chunk_prefix, keys

TABLE = "run-abc123.replay"
ROWS = (("value", "<i8", ()),)
ENVIRONMENTS = 2


class Killed(Exception):
    """The process died here."""


@dataclass
class Guard:
    """Executes transactions until the process dies: before one is sent, or after it was executed and before the reply came."""

    store: Store
    left: int = 1_000_000
    executes_the_last: bool = False

    def __call__(self, what: str, fill: Any) -> list[Any]:
        if self.left == 0 and not self.executes_the_last:
            raise Killed

        def operation(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=True)
            fill(pipeline)
            replies: list[Any] = pipeline.execute()
            return replies

        replies = self.store.run(what, operation)
        if self.left == 0:
            raise Killed
        self.left -= 1
        return replies


@dataclass
class Writer:
    """Writes rows whose value tells where they belong, and items of two rows; remembers what was acknowledged."""

    store: Store
    chunks: ChunkWriter
    number: int
    sequence: int = 0
    rows: Counter[int] = field(default_factory=Counter)
    ordinal: int = 0
    sent: list[bytes] = field(default_factory=list)

    def flush(self, counts: list[int], *, dies_before_its_entry: bool) -> list[tuple[int, int, int]]:
        """Returns the items that were acknowledged: none when the writer dies between rows and entry."""
        env, row, items = [], [], []
        for index, count in enumerate(counts):
            for new in range(self.rows[index], self.rows[index] + count):
                env.append(index)
                row.append(new)
                if new > 0:
                    items.append((self.number, index, new - 1))
        values = np.zeros(len(row), np.dtype([("flags", "u1"), ("version", "<u4"), ("value", "<i8")]))
        values["value"] = [value(self.number, index, at) for index, at in zip(env, row, strict=True)]
        payload = values.view(np.uint8).reshape(len(row), 13)
        prefix = chunk_prefix(TABLE, 0)
        address = (prefix, self.number, np.array(env, np.uint32), np.array(row, np.uint64), payload)
        if dies_before_its_entry:
            self.chunks.write(*address)
            return []
        for index, count in enumerate(counts):
            self.rows[index] += count
        self.sequence += 1
        end = np.array([self.rows[index] for index in range(ENVIRONMENTS)], np.uint64)
        entry = encode_insert(
            InsertEntry(
                writer=self.number,
                sequence=self.sequence,
                keep=np.maximum(end, 1) - np.uint64(1),
                end=end,
                start=np.array([start for _, _, start in items], np.uint64),
                env=np.array([index for _, index, _ in items], np.uint32),
                length=np.full(len(items), 2, np.uint32),
                version=np.zeros(len(items), np.uint32),
                episode_env=np.zeros(0, np.uint32),
                episode_start=np.zeros(0, np.uint64),
                first_ordinal=self.ordinal,
            )
        )
        self.ordinal += len(items)
        self.chunks.write(*address, then=[("XADD", keys.table_log(TABLE, 0), "*", "i", entry)])
        self.sent.append(entry)
        return items

    def repeat(self, back: int) -> None:
        """The last entries once more, in their order: what a writer does whose connection broke before the replies came."""
        for entry in self.sent[-back:]:
            self.store.run("repeat", lambda client, entry=entry: client.xadd(keys.table_log(TABLE, 0), {b"i": entry}))


def value(writer: int, env: int, row: int) -> int:
    return (writer << 32) | (env << 24) | row


def shard_of(store: Store, guard: Guard, spec: TableSpec) -> TableShard:
    shard = TableShard(store, table_id=TABLE, shard=0, spec=spec, guard=guard, seed=3)
    shard.recover()
    return shard


def live(shard: TableShard) -> list[tuple[int, int, int]]:
    table, runs = shard.table, shard.group.rows.runs
    slots = table.items.live()
    run = table.items.run[slots]
    columns = (runs.writer[run].tolist(), runs.env[run].tolist(), table.start_rows(slots).tolist())
    return list(zip(*columns, strict=True))


def require_rows(shard: TableShard, reader: ChunkReader) -> None:
    """Every row of every item is there, and is the one that was written."""
    items = live(shard)
    wanted = [(writer, env, start + step) for writer, env, start in items for step in range(2)]
    columns = [np.array(column) for column in zip(*wanted, strict=True)] if wanted else [np.zeros(0)] * 3
    read = reader.read(
        chunk_prefix(TABLE, 0), 13, columns[0].astype(np.uint32), columns[1].astype(np.uint32), columns[2].astype(np.uint64)
    )
    assert not read.missing.any(), "an item lacks a row"
    assert read.payload[:, 5:].copy().view("<i8")[:, 0].tolist() == [value(*row) for row in wanted]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("flush"), st.integers(1, 2), st.lists(st.integers(0, 5), min_size=2, max_size=2)),
        st.tuples(st.just("flush"), st.integers(1, 2), st.lists(st.integers(0, 5), min_size=2, max_size=2)),
        st.tuples(st.just("torn"), st.integers(1, 2), st.lists(st.integers(0, 5), min_size=2, max_size=2)),
        st.tuples(st.just("repeat"), st.integers(1, 2), st.integers(1, 3)),
        st.tuples(st.just("work"), st.just(0), st.just(0)),
        st.tuples(st.just("snapshot"), st.just(0), st.just(0)),
        st.tuples(st.just("kill"), st.just(0), st.just(0)),
        st.tuples(st.just("kill in work"), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("kill in snapshot"), st.integers(0, 12), st.booleans()),
    ),
    min_size=3,
    max_size=16,
)


@pytest.mark.parametrize("remover", [Fifo(), Uniform(), Prioritized()], ids=lambda remover: remover.kind)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, max_items=st.sampled_from([4, 7, 50]))
def test_every_acknowledged_flush_is_applied_exactly_once(
    *, store: Store, address: Address, remover: Any, steps: list[Any], max_items: int
) -> None:
    store.run("empty the database", lambda client: client.flushall())
    spec = TableSpec(name="replay", max_items=max_items, remover=remover, rows=ROWS)
    chunks, reader = ChunkWriter(address, clock=SystemClock()), ChunkReader(address, clock=SystemClock())
    writers = {number: Writer(store, chunks, number) for number in (1, 2)}
    acknowledged: list[tuple[int, int, int]] = []
    shard = shard_of(store, Guard(store), spec)
    try:
        for kind, number, detail in steps:
            if kind in ("flush", "torn"):
                acknowledged += writers[number].flush(detail, dies_before_its_entry=kind == "torn")
            elif kind == "repeat":
                writers[number].repeat(detail)
            elif kind in ("work", "kill in work"):
                shard = work(shard, store, spec, reader, deadly=None if kind == "work" else (number, detail))
            elif kind in ("snapshot", "kill in snapshot"):
                shard = save(shard, store, spec, deadly=None if kind == "snapshot" else (number, detail))
            else:
                shard = shard_of(store, Guard(store), spec)
        shard = shard_of(store, Guard(store), spec)
        shard.admit()
        items = live(shard)
        assert len(items) == min(len(acknowledged), max_items)
        assert shard.table.limiter.inserted == len(acknowledged)
        if isinstance(remover, Fifo):
            assert items == acknowledged[-max_items:]
        else:
            assert set(items) <= set(acknowledged)
        require_rows(shard, reader)
        again = shard_of(store, Guard(store), spec)
        again.admit()
        assert live(again) == items, "the same log gives the same table"
    finally:
        chunks.close()
        reader.close()


def work(shard: TableShard, store: Store, spec: TableSpec, reader: ChunkReader, *, deadly: tuple[int, bool] | None) -> TableShard:
    """Read, admit, acknowledge, delete rows that nobody needs; killed on the way, another shard takes over."""
    if deadly is not None:
        shard._guard.left, shard._guard.executes_the_last = deadly  # type: ignore[attr-defined]
    try:
        shard.take(shard._read_some())
        shard.admit()
        shard.acknowledge(shard.progress())
        shard.unlink(reader, shard.group.take_garbage())
        shard.acknowledge(shard.progress())
    except Killed:
        return shard_of(store, Guard(store), spec)
    return shard if deadly is None else shard_of(store, Guard(store), spec)


def save(shard: TableShard, store: Store, spec: TableSpec, *, deadly: tuple[int, bool] | None) -> TableShard:
    if deadly is not None:
        shard._guard.left, shard._guard.executes_the_last = deadly  # type: ignore[attr-defined]
    try:
        shard.save_snapshot(shard.snapshot())
    except Killed:
        return shard_of(store, Guard(store), spec)
    return shard if deadly is None else shard_of(store, Guard(store), spec)


def test_updates_and_deletes_are_applied_again_after_a_kill(store: Store, address: Address) -> None:
    spec = TableSpec(name="replay", max_items=50, rows=ROWS)
    chunks = ChunkWriter(address, clock=SystemClock())
    writer = Writer(store, chunks, 1)
    writer.flush([6, 0], dies_before_its_entry=False)
    shard = shard_of(store, Guard(store), spec)
    shard.admit()
    key = shard.table.items.key[shard.table.items.live()]
    update = encode_update(UpdateEntry(keys=key[:2], priority=np.array([7.0, 8.0], np.float32)))
    delete = encode_delete(DeleteEntry(keys=key[3:4]))
    log = keys.table_log(TABLE, 0)
    store.run("update and delete", lambda client: (client.xadd(log, {b"u": update}), client.xadd(log, {b"d": delete})))
    for _ in range(2):
        shard = shard_of(store, Guard(store), spec)
        shard.admit()
        slots = shard.table.items.live()
        assert shard.table.items.priority[slots].tolist() == [7.0, 8.0, 1.0, 1.0]
        shard.save_snapshot(shard.snapshot())
    chunks.close()
