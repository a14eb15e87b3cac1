"""Writes that are not waited for: one is under way while the next is made; none is lost, none overtakes another."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from rollstream.clock import SystemClock
from rollstream.errors import SchemaMismatch, StoreError, StoreUnavailable
from rollstream.store import Address, ChunkReader, ChunkWriter, EmbeddedServer, Store, chunk_prefix, keys

PREFIX = chunk_prefix("cart-0a1b2c.replay", 0)
LOG = keys.table_log("cart-0a1b2c.replay", 0)
ENV = np.zeros(256, np.uint32)


@pytest.fixture
def writer(address: Address) -> Iterator[ChunkWriter]:
    opened = ChunkWriter(address, clock=SystemClock(), deadline_s=10.0)
    yield opened
    opened.close()


def number(flush: int) -> NDArray[np.uint64]:
    return np.arange(flush * 256, flush * 256 + 256, dtype=np.uint64)


def payload(flush: int) -> NDArray[np.uint8]:
    return np.full((256, 40), flush, np.uint8)


def entry(flush: int) -> list[tuple[bytes | str | int, ...]]:
    return [("XADD", LOG, "*", "i", flush)]


def begin(writer: ChunkWriter, flush: int):  # type: ignore[no-untyped-def]
    return writer.begin(PREFIX, 1, ENV, number(flush), payload(flush), then=entry(flush))


def rows(address: Address, flush: int) -> NDArray[np.uint8]:
    reader = ChunkReader(address, clock=SystemClock())
    read = reader.read(PREFIX, 40, ENV + 1, ENV, number(flush))
    reader.close()
    assert not read.missing.any()
    return read.payload


def stop_reading(server: EmbeddedServer) -> None:
    os.kill(server.pid, signal.SIGSTOP)


def kill(server: EmbeddedServer) -> None:
    os.kill(server.pid, signal.SIGKILL)
    while server.poll() is None:
        SystemClock().sleep(0.01)


def logged(store: Store) -> list[int]:
    entries = store.run("read the log", lambda client: client.xrange(LOG))
    return [int(fields[b"i"]) for _, fields in entries]  # type: ignore[union-attr]


def test_the_next_write_finishes_the_one_before(store: Store, address: Address, writer: ChunkWriter) -> None:
    assert writer.unsettled is None
    first = begin(writer, 1)
    assert not first.settled
    assert writer.unsettled is first
    second = begin(writer, 2)
    assert first.settled
    assert writer.unsettled is second
    third = writer.begin_values(PREFIX, 1, ENV, number(3), [b"x" * 40] * 256, then=entry(3))
    writer.settle()
    writer.settle()
    assert writer.unsettled is None
    ids = [pending.replies[0] for pending in (first, second, third) if pending.replies]
    assert ids == [entry_id for entry_id, _ in store.run("read", lambda client: client.xrange(LOG))]  # type: ignore[union-attr]
    for flush in (1, 2):
        np.testing.assert_array_equal(rows(address, flush), payload(flush))
    assert rows(address, 3).tobytes() == b"x" * 40 * 256


def test_a_write_that_waits_comes_after_the_one_under_way(store: Store, writer: ChunkWriter) -> None:
    first = begin(writer, 1)
    writer.write(PREFIX, 1, ENV, number(2), payload(2), then=entry(2))
    assert first.settled
    second = begin(writer, 3)
    writer.write_values(PREFIX, 1, ENV[:1], number(4)[:1], [b"value"], then=entry(4))
    assert second.settled
    assert logged(store) == [1, 2, 3, 4]


def test_rows_may_go_without_commands_and_commands_without_rows(store: Store, writer: ChunkWriter) -> None:
    rows_only = writer.begin(PREFIX, 1, ENV, number(1), payload(1))
    commands_only = writer.begin(PREFIX, 1, ENV[:0], number(1)[:0], payload(1)[:0], then=[("PING",)])
    nothing = writer.begin(PREFIX, 1, ENV[:0], number(1)[:0], payload(1)[:0])
    writer.settle()
    assert [pending.replies for pending in (rows_only, commands_only, nothing)] == [[], [b"PONG"], []]


@pytest.mark.parametrize("chunk_bytes", [8_000, 70_000])
def test_a_large_write_is_done_on_return(store: Store, writer: ChunkWriter, chunk_bytes: int) -> None:
    first = begin(writer, 1)
    large = np.ones((256, chunk_bytes), np.uint8)
    second = writer.begin(PREFIX, 1, ENV, number(2), large, then=entry(2))
    third = writer.begin_values(PREFIX, 1, ENV, number(3), [memoryview(row) for row in large], then=entry(3))
    assert first.settled
    assert second.settled
    assert third.settled
    assert writer.unsettled is None
    assert logged(store) == [1, 2, 3]


def test_a_write_whose_connection_was_lost_is_sent_again_from_memory_of_its_own(
    store: Store, server: EmbeddedServer, address: Address, writer: ChunkWriter
) -> None:
    for values in (False, True):
        writer.settle()
        writer.write(PREFIX, 1, ENV[:0], number(0)[:0], payload(0)[:0], then=[("PING",)])  # it is connected
        stop_reading(server)
        mine, who, names = payload(7), ENV.copy(), number(7)
        if values:
            buffer = bytearray(mine.tobytes())
            views = [memoryview(buffer)[start : start + 40] for start in range(0, len(buffer), 40)]
            pending = writer.begin_values(PREFIX, 1, who, names, views, then=entry(7))
            buffer[:] = bytes(len(buffer))
        else:
            pending = writer.begin(PREFIX, 1, who, names, mine, then=entry(7))
        mine[:], who[:], names[:] = 0, 9, 0
        kill(server)
        server.start()
        writer.settle()
        assert pending.settled
        np.testing.assert_array_equal(rows(address, 7), payload(7))
        assert logged(store)[-1] == 7


def test_a_write_that_fails_is_reported_by_the_next_call_and_stays_under_way(
    store: Store, server: EmbeddedServer, address: Address
) -> None:
    writer = ChunkWriter(address, clock=SystemClock(), deadline_s=0.1)
    writer.write(PREFIX, 1, ENV[:0], number(0)[:0], payload(0)[:0], then=[("PING",)])  # it is connected
    stop_reading(server)
    first = begin(writer, 1)
    kill(server)
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="did not store rows within"):
            begin(writer, 2)
        assert writer.unsettled is first
    with pytest.raises(StoreUnavailable, match="did not store rows within"):
        writer.settle()
    server.start()
    begin(writer, 2)
    writer.settle()
    writer.close()
    assert logged(store) == [1, 2]
    for flush in (1, 2):
        np.testing.assert_array_equal(rows(address, flush), payload(flush))


def test_a_write_without_room_keeps_its_place_in_the_log(store: Store, address: Address) -> None:
    writer = ChunkWriter(address, clock=SystemClock(), deadline_s=0.1)
    store.run("limit memory", lambda client: client.config_set("maxmemory", "1mb"))
    try:
        first = begin(writer, 1)
        with pytest.raises(StoreUnavailable, match="out of memory"):
            begin(writer, 2)
        assert writer.unsettled is first
    finally:
        store.run("unlimit memory", lambda client: client.config_set("maxmemory", "0"))
    second = begin(writer, 2)
    writer.settle()
    writer.close()
    assert first.settled
    assert second.settled
    assert logged(store) == [1, 2]


def test_a_write_that_redis_refuses_keeps_back_the_next_one(store: Store, writer: ChunkWriter) -> None:
    store.run("put something else there", lambda client: client.set("rs:a", 1))
    writer.begin(PREFIX, 1, ENV, number(1), payload(1), then=[("RPUSH", "rs:a", 1)])
    for _ in range(2):
        with pytest.raises(StoreError, match="could not store rows: WRONGTYPE"):
            begin(writer, 2)
    store.run("make room for it", lambda client: client.delete("rs:a"))
    begin(writer, 2)
    writer.settle()
    assert logged(store) == [2]
    assert store.run("read", lambda client: client.lrange("rs:a", 0, -1)) == [b"1"]


def test_arrays_that_do_not_fit_together_are_refused_at_once(store: Store, writer: ChunkWriter) -> None:
    first = begin(writer, 1)
    with pytest.raises(SchemaMismatch, match="chunks to write need env"):
        writer.begin(PREFIX, 1, ENV[:3], number(2), payload(2))
    with pytest.raises(SchemaMismatch, match="values to write need env"):
        writer.begin_values(PREFIX, 1, ENV, number(2), [b"one"])
    assert writer.unsettled is first
    writer.settle()
    assert logged(store) == [1]
