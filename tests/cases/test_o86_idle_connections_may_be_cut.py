"""O86: an idle blocking socket is cut by a middlebox, and the process crashes on a fixed cadence.

Here: no command blocks longer than the socket waits, and a connection that was cut while idle or while blocking is replaced
without anyone noticing.
"""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np

from rollstream.clock import SystemClock
from rollstream.store import MAX_BLOCK_S, Address, ChunkReader, ChunkWriter, Store, chunk_prefix
from rollstream.store.connection import SOCKET_TIMEOUT_S


class Link(Protocol):
    """What this test needs of the `link` fixture."""

    address: Address
    connections: int

    def cut(self) -> None: ...


def test_blocks_are_finite_and_shorter_than_the_socket_waits(store: Store) -> None:
    assert 0.0 < MAX_BLOCK_S <= 5.0 < SOCKET_TIMEOUT_S
    assert store.max_block_s < SOCKET_TIMEOUT_S
    assert store.client.connection_pool.connection_kwargs["health_check_interval"] > 0


def test_connections_cut_while_idle_are_replaced(store: Store, link: Link) -> None:
    far = Store(link.address, clock=SystemClock(), deadline_s=10.0)
    writer = ChunkWriter(link.address, clock=SystemClock(), deadline_s=10.0)
    reader = ChunkReader(link.address, clock=SystemClock(), deadline_s=10.0)
    env, chunk_no, rows = np.arange(9, dtype=np.uint32), np.arange(9, dtype=np.uint64), np.full((9, 40), 3, np.uint8)
    for _ in range(3):
        assert far.run("ask", lambda client: client.ping())
        writer.write(chunk_prefix("t", 0), 1, env, chunk_no, rows)
        assert not reader.read(chunk_prefix("t", 0), 40, env * 0 + 1, env, chunk_no).missing.any()
        link.cut()
    assert link.connections == 9
    far.close()
    writer.close()
    reader.close()


def test_a_connection_cut_while_blocking_is_replaced(store: Store, link: Link) -> None:
    far = Store(link.address, clock=SystemClock(), deadline_s=20.0)
    blocking = threading.Event()
    result: list[object] = []

    def take(client):  # type: ignore[no-untyped-def]
        blocking.set()
        return client.blpop(["rs:test:list"], timeout=2)

    def wait() -> None:
        reply = None
        while reply is None:
            reply = far.run("take", take)
        result.append(reply[1])

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert blocking.wait(timeout=10.0)
    link.cut()
    while not result:
        # pushed until taken: one that was handed to the cut connection is lost, which is why lists only wake, never carry
        store.run("push", lambda client: client.rpush("rs:test:list", "x"))
        waiter.join(timeout=0.05)
    waiter.join(timeout=20.0)
    assert result == [b"x"]
    far.close()
