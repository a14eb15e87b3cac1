"""A table shard driven by hand: entries that cannot be read, and writes of an owner that is none any more."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import DeadlineExceeded, LeaseLost, StoreUnavailable
from rollstream.replay import EachRow, SampleToInsertRatio, TableWriter
from rollstream.replay.log import DeleteEntry, InsertEntry, encode_delete, encode_insert
from rollstream.replay.position import read_position
from rollstream.replay.shard import TableShard
from rollstream.store import Lease, Store, keys
from rollstream.store.retry import is_out_of_memory


def entry(sequence: int, *, tables: tuple[str, ...] = ("",)) -> bytes:
    """One row, and one item over it for each table."""
    items = len(tables)
    return encode_insert(
        InsertEntry(
            writer=7,
            sequence=sequence,
            keep=np.array([sequence], np.uint64),
            end=np.array([sequence], np.uint64),
            start=np.full(items, sequence - 1, np.uint64),
            env=np.zeros(items, np.uint32),
            length=np.ones(items, np.uint32),
            version=np.ones(items, np.uint32),
            episode_env=np.zeros(int(sequence == 1), np.uint32),
            episode_start=np.zeros(int(sequence == 1), np.uint64),
            first_ordinal=sequence * items,
            tables=tables if items > 1 else (),
            table=np.arange(items, dtype=np.uint8) if items > 1 else None,
        )
    )


@pytest.fixture
def make_shard(store: Store, spec: Callable[..., Any], table_id: str) -> Callable[[Any], TableShard]:
    return lambda guard: TableShard(store, table_id=table_id, shard=0, spec=spec(), guard=guard)


def lease(store: Store, owner: str, *, ttl_s: float = 30.0) -> Lease:
    taken = Lease.acquire(store, key=keys.replay_lease(0), token_key=keys.replay_token(0), owner=owner, ttl_s=ttl_s)
    assert taken is not None
    return taken


def keys_of(shard: TableShard) -> list[int]:
    items = shard.table.items
    return [int(key) for key in items.key[items.live()]]


def test_entries_that_cannot_be_read_are_skipped_counted_and_logged(
    make_shard: Callable[[Any], TableShard], store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    shard = make_shard(lease(store, "a").guarded)
    with caplog.at_level(logging.ERROR):
        shard.take([(b"1-1", {b"x": b"?"}), (b"1-2", {b"i": b"short"}), (b"1-3", {b"i": entry(1)})])
    assert shard.admit() == 1
    assert shard.entries_bad == 2
    assert "log entry has the unknown kind b'x'; this release knows i, u and d" in caplog.text
    assert shard.cursor == "1-3"


def test_an_owner_that_lost_its_lease_writes_nothing(
    make_shard: Callable[[Any], TableShard], store: Store, table_id: str
) -> None:
    old = lease(store, "old")
    shard = make_shard(old.guarded)
    shard.take([(b"1-1", {b"i": entry(1)})])
    shard.admit()
    old.release()
    lease(store, "new")
    with pytest.raises(LeaseLost, match="is now held by .*new; stop writing for it"):
        shard.acknowledge(shard.progress())
    with pytest.raises(LeaseLost, match="stop writing for it"):
        shard.save_snapshot(shard.snapshot())
    assert read_position(store, table_id=table_id, shard=0) is None
    assert store.run("look", lambda client: client.exists(keys.table_snapshot(table_id, 0))) == 0


def test_a_restarted_shard_admits_again_exactly_what_it_had_admitted(
    make_shard: Callable[[Any], TableShard], store: Store, table_id: str
) -> None:
    guard = lease(store, "a").guarded
    for sequence in (1, 2, 3):
        store.run("write", lambda client, sequence=sequence: client.xadd(keys.table_log(table_id, 0), {b"i": entry(sequence)}))
    shard = make_shard(guard)
    shard.recover()
    assert (shard.table.size, shard.waiting_entries) == (0, 3), "nothing was admitted before, so the limiter decides"
    assert shard.admit() == 3
    shard.acknowledge(shard.progress())
    again = make_shard(guard)
    again.recover()
    assert (again.table.size, again.waiting_entries) == (3, 0)
    assert keys_of(again) == keys_of(shard) == [(7 << 32) | ordinal for ordinal in (1, 2, 3)]


@pytest.mark.parametrize("waiting", ["primary", "both"])
def test_a_reset_while_inserts_wait_is_the_same_after_a_restart(
    *, store: Store, spec: Callable[..., Any], table_id: str, waiting: str
) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=1, tolerance_items=3)
    guard = lease(store, "a").guarded
    recent = table_id.replace("replay", "recent")

    def make() -> TableShard:
        return TableShard(store, table_id=table_id, shard=0, spec=spec(limiter=limiter), guard=guard)

    def sharing() -> dict[str, Any]:
        return {recent: spec(name="recent", rows_of="replay", **({"limiter": limiter} if waiting == "both" else {}))}

    def contents(shard: TableShard) -> dict[str, list[int]]:
        return {name: table.items.key[table.items.live()].tolist() for name, table in shard.group.tables.items()}

    def write(kind: bytes, buffer: bytes) -> None:
        store.run("write", lambda client: client.xadd(keys.table_log(table_id, 0), {kind: buffer}))

    for sequence in range(1, 9):
        write(b"i", entry(sequence, tables=("replay", "recent")))
    shard = make()
    shard.recover(sharing())
    shard.admit()
    write(b"d", encode_delete(DeleteEntry(keys=np.zeros(0, np.uint64), reset="replay")))
    write(b"i", entry(9, tables=("replay", "recent")))
    shard.take(shard._read_some())
    while shard.admit():
        pass
    assert contents(shard)["replay"] == ([] if waiting == "both" else [(7 << 32) | 18])
    assert len(contents(shard)["recent"]) == (4 if waiting == "both" else 9)
    shard.acknowledge(shard.progress())
    again = make()
    again.recover(sharing())
    while again.admit():
        pass
    assert contents(again) == contents(shard)
    assert again.table.limiter.inserted == shard.table.limiter.inserted


def test_pieces_of_a_snapshot_are_not_written_by_a_former_owner(
    make_shard: Callable[[Any], TableShard], store: Store, table_id: str
) -> None:
    first = lease(store, "first")
    old = make_shard(first.guarded)
    old.take([(b"1-1", {b"i": entry(1)})])
    old.admit()
    late = old.snapshot()
    store.run("let the lease run out", lambda client: client.delete(keys.replay_lease(0)))
    second = lease(store, "second")
    new = make_shard(second.guarded)
    new.take([(b"1-1", {b"i": entry(1)}), (b"1-2", {b"i": entry(2)})])
    new.admit()
    new.save_snapshot(new.snapshot())
    with pytest.raises(LeaseLost, match="stop writing for it"):
        old.save_snapshot(late)
    again = make_shard(second.guarded)
    again.recover()
    assert keys_of(again) == keys_of(new)


def test_a_snapshot_that_redis_has_no_room_for_leaves_nothing_behind(
    make_shard: Callable[[Any], TableShard], store: Store, table_id: str
) -> None:
    held = lease(store, "a")

    def guard(what: str, fill: Any) -> list[Any]:
        return held.guarded(what, fill, deadline_s=0.1)

    shard = make_shard(guard)
    shard.take([(b"1-1", {b"i": entry(1)})])
    shard.admit()
    store.client.config_set("maxmemory", "1")
    try:
        with pytest.raises(StoreUnavailable, match="raise maxmemory or shrink tables") as caught:
            shard.save_snapshot(shard.snapshot())
        assert is_out_of_memory(caught.value)
    finally:
        store.client.config_set("maxmemory", "0")
    assert store.client.keys("*snapshot*") == []
    shard.save_snapshot(shard.snapshot())
    again = make_shard(guard)
    again.recover()
    assert keys_of(again) == keys_of(shard)


def test_a_writer_that_waits_while_redis_is_away_ends_at_its_deadline(
    *, store: Store, link: Any, spec: Callable[..., Any], table_id: str, episodic: Any
) -> None:
    table_spec = spec(unread_entries=1)
    store.run("make the table", lambda client: client.hset(keys.tables(), table_id, table_spec.model_dump_json()))
    through_link = Store(link.address, clock=SystemClock(), deadline_s=0.3, socket_timeout_s=0.5)
    writer = TableWriter(
        through_link,
        link.address,
        table_id=table_id,
        spec=table_spec,
        rule=EachRow(),
        environments=2,
        clock=SystemClock(),
    )
    writer.append(episodic(2, episode_steps=5).rollout(4))
    link.swallow()
    with pytest.raises(DeadlineExceeded, match="room for its next rows while Redis is away"):
        writer.wait_for_room(deadline_s=0.5)
    through_link.close()
