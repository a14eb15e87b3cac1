"""What a writer leaves in Redis: chunks, log entries, and keys that its owner knows at once."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, SchemaMismatch, TableError
from rollstream.metrics import Waits
from rollstream.replay import EachRow, NStep, TableWriter
from rollstream.replay.encoding import Codec
from rollstream.replay.item_keys import make_keys, shard_of
from rollstream.replay.log import InsertEntry, decode_insert
from rollstream.replay.rules import Sequence
from rollstream.spaces import Column, RowSpec
from rollstream.store import Address, Store, keys

CLOCK = SystemClock()
TABLE = "run-abc123.replay"


class Bench:
    """Makes writers of a table that exists and that nobody reads, and reads what they wrote."""

    def __init__(self, store: Store, address: Address, spec: Callable[..., Any], table_id: str) -> None:
        self.store, self.address, self.make_spec, self.table_id = store, address, spec, table_id
        self.experiment = table_id.split(".", 1)[0]
        self.made: list[TableWriter] = []

    def create(self, **changes: Any) -> Any:
        spec = self.make_spec(**changes)
        self.store.run(
            "make the table",
            lambda client: client.hset(keys.tables(), f"{self.experiment}.{spec.name}", spec.model_dump_json()),
        )
        return spec

    def writer(self, spec: Any = None, **settings: Any) -> TableWriter:
        if "tables" not in settings:
            settings.setdefault("rule", NStep(2))
        writer = TableWriter(
            self.store,
            self.address,
            table_id=self.table_id,
            spec=spec if spec is not None else self.create(),
            environments=settings.pop("environments", 2),
            clock=CLOCK,
            **settings,
        )
        self.made.append(writer)
        return writer

    def entries(self, shard: int = 0) -> list[InsertEntry]:
        for writer in self.made:
            writer.settle()
        log = self.store.run("read the log", lambda client: client.xrange(keys.table_log(self.table_id, shard)))
        return [decode_insert(fields[b"i"]) for _, fields in log]

    def chunk(self, writer: TableWriter, env: int, chunk_no: int) -> bytes | None:
        key = keys.chunk_key(self.table_id, writer.shard, writer=writer.writer_id, env=env, chunk_no=chunk_no)
        value: bytes | None = self.store.run("read a chunk", lambda client: client.get(key))
        return value


@pytest.fixture
def bench(store: Store, address: Address, spec: Callable[..., Any], table_id: str) -> Iterator[Bench]:
    made = Bench(store, address, spec, table_id)
    yield made
    for writer in made.made:
        writer.close()


def test_a_flush_is_chunks_and_one_entry_with_the_keys_that_the_writer_returned(bench: Bench, episodic: Any) -> None:
    writer = bench.writer()
    source = episodic(2, episode_steps=4)
    first, second = source.rollout(3, version=7), source.rollout(3, version=8)
    results = [writer.append(first), writer.append(second)]
    entries = bench.entries()
    assert [entry.sequence for entry in entries] == [1, 2]
    assert [entry.items for entry in entries] == [result.items for result in results]
    for entry, result in zip(entries, results, strict=True):
        made = make_keys(0, writer.writer_id, entry.first_ordinal, entry.items)
        assert result.keys["replay"].tolist() == made.tolist()
    assert len({key for result in results for key in result.keys["replay"].tolist()}) == results[0].items + results[1].items
    newest = (entries[1].start + entries[1].length - 1).astype(int)
    assert entries[1].version.tolist() == np.where(newest < 3, 7, 8).tolist()
    assert list(zip(entries[0].episode_env.tolist(), entries[0].episode_start.tolist(), strict=True)) == [(0, 0), (1, 0)]
    assert list(zip(entries[1].episode_env.tolist(), entries[1].episode_start.tolist(), strict=True)) == [(0, 5), (1, 5)]
    assert bench.chunk(writer, 1, 4) == second.rows[4:5].tobytes()


def test_several_tables_take_items_of_rows_that_are_stored_once(bench: Bench, episodic: Any) -> None:
    spec = bench.create()
    bench.create(name="sequences", rows_of="replay")
    writer = bench.writer(
        spec, tables={"sequences": [Sequence(length=2, stride=2, burn_in=1, priority=3.0), EachRow()], "replay": NStep(1)}
    )
    result = writer.append(episodic(2, episode_steps=20).rollout(6))
    (entry,) = bench.entries()
    assert entry.tables == ("sequences", "replay")
    assert entry.table is not None
    assert entry.lead is not None
    assert entry.priority is not None
    counts = np.bincount(entry.table).tolist()
    assert counts == [2 * 2 + 12, 10]
    assert {name: len(made) for name, made in result.keys.items()} == {"sequences": 16, "replay": 10}
    assert entry.lead[:2].tolist() == [0, 1]
    assert entry.priority[:4].tolist() == [3.0] * 4
    assert np.isnan(entry.priority[4:]).all()
    stored = bench.store.run("list keys", lambda client: client.keys(f"{keys.chunk_prefix(TABLE, 0).decode()}*"))
    assert len(set(stored) - {keys.table_log(TABLE, 0).encode()}) == 12


def test_a_table_that_does_not_take_these_rows_is_refused(bench: Bench, episodic: Any) -> None:
    spec = bench.create()
    bench.create(name="other")
    writer = bench.writer(spec, tables={"replay": EachRow(), "other": EachRow()})
    with pytest.raises(ConfigError, match="table run-abc123.other has rows of its own, this writer writes those of replay"):
        writer.append(episodic(2, episode_steps=3).rollout(2))


def test_a_writer_waits_for_all_of_its_tables(bench: Bench, episodic: Any) -> None:
    writer = bench.writer(tables={"replay": EachRow(), "later": EachRow()})
    with pytest.raises(DeadlineExceeded, match="waits for the learner to create it, with the tables: replay, later"):
        writer.append(episodic(2, episode_steps=3).rollout(2), deadline_s=0.1)


def test_a_writer_takes_a_rule_or_tables(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="takes either rule or tables, got both"):
        bench.writer(rule=EachRow(), tables={"replay": EachRow()})
    with pytest.raises(ConfigError, match="a writer writes to between 1 and 255 tables, got 0"):
        bench.writer(tables={})
    with pytest.raises(ConfigError, match="Sequence looks at the column 'td', which must be a scalar column of the rows"):
        from rollstream.replay.rules import TdMix

        bench.writer(rule=Sequence(2, 2, priority=TdMix("td")))


def test_a_table_with_the_rows_of_another_has_no_writer_of_its_own(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="has the rows of replay; make a writer of that table, with tables={'second': ...}"):
        bench.writer(bench.make_spec(name="second", rows_of="replay"))


def test_rules_leave_the_rows_that_stacks_need(bench: Bench, episodic: Any) -> None:
    spec = bench.create(stack={"observation": 4})
    rollout = episodic(2, episode_steps=9).rollout(3)
    for rule in (NStep(1, history=2), Sequence(4, 4, burn_in=2)):
        with pytest.raises(
            ConfigError, match="table replay stacks 4 frames, and .* keeps 2 rows before an item; give it history=3"
        ):
            bench.writer(spec, rule=rule).append(rollout)
    assert bench.writer(spec, rule=NStep(1, history=3)).append(rollout).items == 4


def test_writers_take_the_shards_of_a_table_in_turn(bench: Bench, episodic: Any) -> None:
    spec = bench.create(shards=3)
    writers = [bench.writer(spec) for _ in range(3)]
    assert sorted(writer.shard for writer in writers) == [0, 1, 2]
    for writer in writers:
        result = writer.append(episodic(2, episode_steps=3).rollout(4))
        assert set(shard_of(result.keys["replay"]).tolist()) == {writer.shard}
        assert [entry.writer for entry in bench.entries(writer.shard)] == [writer.writer_id]


def test_priorities_may_be_given_for_the_items_of_one_call(bench: Bench, episodic: Any) -> None:
    writer = bench.writer(rule=EachRow())
    rollout = episodic(2, episode_steps=9).rollout(3)
    with pytest.raises(TableError, match="5 priorities were given for 6 new items; give one for each"):
        writer.append_rows(rollout.rows, rollout.offsets, priority=np.ones(5, np.float32))
    writer.append_rows(rollout.rows, rollout.offsets, priority=np.arange(6, dtype=np.float32))
    (entry,) = bench.entries()
    assert entry.priority is not None
    assert entry.priority.tolist() == [0, 1, 2, 3, 4, 5]


def test_rows_of_an_encoded_table_are_values_whose_sizes_stand_in_the_log(bench: Bench) -> None:
    rows = RowSpec((Column(name="observation", dtype="|u1", shape=(64, 64)), Column(name="reward", dtype="<f4")))
    spec = bench.create(rows=rows, chunk_rows=2)
    assert spec.resolved_encoding == "zstd"
    writer = bench.writer(spec, rule=NStep(1), environments=1)
    packed = np.zeros(5, rows.dtype)
    packed["observation"] += np.arange(5, dtype=np.uint8)[:, None, None]
    writer.append_rows(packed, np.array([0, 5]))
    (entry,) = bench.entries()
    values = [bench.chunk(writer, 0, number) for number in (0, 1)]
    assert entry.chunk_bytes is not None
    assert entry.chunk_bytes.tolist() == [len(value or b"") for value in values]
    decoded = Codec(spec).decode([value or b"" for value in values])
    assert decoded.tobytes() == packed[:4].tobytes()
    assert entry.items == 3


def test_padding_writes_the_rows_of_a_chunk_that_is_not_full(bench: Bench, episodic: Any) -> None:
    writer = bench.writer(bench.create(chunk_rows=4), rule=EachRow())
    rollout = episodic(2, episode_steps=20).rollout(5)
    writer.append_rows(rollout.rows, rollout.offsets, pad=np.array([True, False]))
    (entry,) = bench.entries()
    assert entry.end.tolist() == [8, 4]
    assert entry.items == 5 + 4


def test_an_error_names_columns_and_environments_that_do_not_fit(bench: Bench, episodic: Any) -> None:
    writer = bench.writer()
    rollout = episodic(2, episode_steps=3).rollout(2)
    with pytest.raises(SchemaMismatch, match="use the table's spec to make rows"):
        writer.append_rows(np.zeros(2, [("flags", "u1")]), np.array([0, 1, 2]))
    with pytest.raises(SchemaMismatch, match="rollout has 1 environments where the writer was made for 2"):
        writer.append(dataclasses.replace(rollout, offsets=np.array([0, 4])))


def test_a_closed_writer_takes_no_more(bench: Bench, episodic: Any) -> None:
    writer = bench.writer()
    source = episodic(2, episode_steps=3)
    writer.append(source.rollout(2))
    writer.close()
    writer.close()
    with pytest.raises(ConfigError, match="of table run-abc123.replay is closed; make a new one to write more"):
        writer.append(source.rollout(2))
    assert len(bench.entries()) == 2


def _use(writer: TableWriter, rollout: Any, report: Any) -> None:
    try:
        writer.append(rollout)
    except ConfigError as error:
        report.send(str(error))
    writer.close()


def test_a_writer_refuses_to_be_used_in_a_forked_child(bench: Bench, episodic: Any) -> None:
    writer = bench.writer()
    source = episodic(2, episode_steps=3)
    writer.append(source.rollout(2))
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_use, args=(writer, source.rollout(2), theirs))
    child.start()
    assert ours.poll(20)
    assert "after a fork; both would write under one number, so make a writer in each process" in ours.recv()
    child.join(20)
    writer.append(source.rollout(2))
    assert [entry.sequence for entry in bench.entries()] == [1, 2]


def test_a_flush_whose_connection_breaks_is_sent_again_under_its_number(bench: Bench, episodic: Any, link: Any) -> None:
    writer = TableWriter(
        bench.store,
        link.address,
        table_id=TABLE,
        spec=bench.create(unread_entries=100),
        rule=NStep(2),
        environments=2,
        clock=CLOCK,
    )
    source = episodic(2, episode_steps=7)
    rollouts, made = [], 0
    for number in range(24):
        rollouts.append(source.rollout(3))
        made += writer.append(rollouts[-1]).items
        if number % 3 == 0:
            link.cut()
    link.cut()
    writer.close()
    entries = bench.entries()
    assert len(entries) >= 25
    by_number = {entry.sequence: entry for entry in entries}
    assert sorted(by_number) == list(range(1, 26))
    for entry in entries:  # what came twice is the same, so the shard may take either
        first = by_number[entry.sequence]
        assert (entry.start.tolist(), entry.first_ordinal) == (first.start.tolist(), first.first_ordinal)
    assert sum(entry.items for entry in by_number.values()) == made + by_number[25].items
    stored = b"".join(bench.chunk(writer, 1, number) or b"" for number in range(72))
    assert stored == b"".join(rollout.rows[3:].tobytes() for rollout in rollouts)


@pytest.fixture
def full_redis(store: Store) -> Iterator[Callable[[], None]]:
    """Fills Redis up to its limit; called again, lifts the limit. It is lifted after the test in any case."""
    limited = [False]

    def switch() -> None:
        def operation(client: Any) -> None:
            used = client.info("memory")["used_memory"]
            client.config_set("maxmemory", 0 if limited[0] else used // 2)

        store.run("change its memory", operation)
        limited[0] = not limited[0]

    yield switch
    store.run("lift the limit", lambda client: client.config_set("maxmemory", 0))


def test_redis_without_memory_is_waited_for_and_nothing_is_lost_or_written_twice(
    bench: Bench, episodic: Any, full_redis: Callable[[], None]
) -> None:
    waits = Waits(CLOCK)
    writer, source = bench.writer(rule=EachRow(), waits=waits), episodic(2, episode_steps=50)
    rollouts = [source.rollout(3) for _ in range(4)]
    writer.append(rollouts[0])
    writer.settle()
    full_redis()
    writer.append(rollouts[1])  # sent off; that Redis refuses it comes out with the next call
    with pytest.raises(
        DeadlineExceeded,
        match=r"table run-abc123.replay shard 0: writer \d+ waited .* s for Redis, which is out of memory: .* of maxmemory .* bytes "
        "are used; raise maxmemory, or give tables a smaller max_items or max_bytes. Its .* bytes of rows are held",
    ):
        writer.append(rollouts[2], deadline_s=0.2)
    assert any("Redis is out of memory" in total.for_whom for total in waits.totals())
    full_redis()
    writer.append(rollouts[2])
    writer.append(rollouts[3])
    entries = bench.entries()
    assert [entry.sequence for entry in entries] == [1, 2, 3, 4]
    assert [entry.end.tolist() for entry in entries] == [[3, 3], [6, 6], [9, 9], [12, 12]]
    stored = b"".join(bench.chunk(writer, 1, number) or b"" for number in range(12))
    assert stored == b"".join(rollout.rows[3:].tobytes() for rollout in rollouts)


def test_a_flush_that_is_held_goes_before_other_rows(bench: Bench, episodic: Any, full_redis: Callable[[], None]) -> None:
    writer, source = bench.writer(rule=EachRow()), episodic(2, episode_steps=50)
    rollouts = [source.rollout(3) for _ in range(3)]
    full_redis()
    writer.append(rollouts[0])
    with pytest.raises(DeadlineExceeded, match="out of memory"):
        writer.append(rollouts[1], deadline_s=0.1)
    full_redis()
    writer.append(rollouts[2])
    assert [entry.end.tolist() for entry in bench.entries()] == [[3, 3], [6, 6], [9, 9]]


def _interrupted(call: Callable[[], object]) -> None:
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        timer.join()


def test_ctrl_c_ends_every_wait_and_the_writer_can_go_on(
    bench: Bench, episodic: Any, full_redis: Callable[[], None], store: Store
) -> None:
    writer, source = bench.writer(bench.create(unread_entries=1), rule=EachRow()), episodic(2, episode_steps=50)
    writer.append(source.rollout(1))
    _interrupted(lambda: writer.flush(deadline_s=20))
    held = source.rollout(1)
    _interrupted(lambda: writer.append(held, deadline_s=20))
    full_redis()
    _interrupted(lambda: writer.append(held, beyond_bound=True) and writer.settle(deadline_s=20))
    full_redis()
    _interrupted(lambda: bench.writer(tables={"replay": EachRow(), "later": EachRow()}).append(held, deadline_s=20))
    writer.append(source.rollout(1), beyond_bound=True)
    assert [entry.end.tolist() for entry in bench.entries()] == [[1, 1], [2, 2], [3, 3]]
