"""O82, O83: a blocking read ignores its own block time when the link swallows bytes; a consumer hangs for hours in silence.

Here: a proxy drops every byte without closing anything. Each way to Redis notices within its socket time-out, raises at its
deadline, and works again on a new connection once the link is back, while the old connection stays dead.
"""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import StoreUnavailable
from rollstream.store import Address, ChunkReader, ChunkWriter, Credit, Store, chunk_prefix

PREFIX = chunk_prefix("t", 0)
ENV = np.arange(600, dtype=np.uint32)
CHUNK_NO = np.arange(600, dtype=np.uint64)
ROWS = np.full((600, 1000), 7, np.uint8)


class Link(Protocol):
    """What this test needs of the `link` fixture."""

    address: Address

    def swallow(self) -> None: ...
    def heal(self) -> None: ...


@pytest.fixture
def far(store: Store, link: Link) -> Store:
    """A store behind the link, with a time-out that suits a test."""
    opened = Store(link.address, clock=SystemClock(), deadline_s=20.0, socket_timeout_s=0.2)
    assert opened.run("ask", lambda client: client.ping())
    return opened


def test_a_blocking_read_on_a_dead_link_raises_at_its_deadline(far: Store, link: Link) -> None:
    link.swallow()
    with pytest.raises(StoreUnavailable, match="did not read within"):
        far.run("read", lambda client: client.xread({"rs:test": "$"}, block=100), deadline_s=0.1)
    far.close()


def test_a_blocking_read_goes_on_by_itself_when_the_link_is_back(far: Store, link: Link) -> None:
    link.swallow()
    tries = []

    def read(client):  # type: ignore[no-untyped-def]
        tries.append(1)
        if len(tries) == 3:
            link.heal()
        return client.xread({"rs:test": "0"}, block=50)

    assert far.run("read", read) == []
    assert len(tries) == 3
    far.close()


def test_waiting_for_credit_survives_a_dead_link(far: Store, store: Store, link: Link) -> None:
    def credit(through: Store) -> Credit:
        return Credit(through, credit_key="rs:test:credit", wake_key=lambda writer: f"rs:test:wake:{writer}")

    result: list[int] = []
    waiter = threading.Thread(target=lambda: result.append(credit(far).wait(7, at_least=5, deadline_s=30.0)))
    link.swallow()
    waiter.start()
    with store.client.pipeline() as pipeline:
        credit(store).grant(pipeline, 7, 5)
        pipeline.execute()
    link.heal()
    waiter.join(timeout=30.0)
    assert result == [5]
    far.close()


def test_rows_are_not_waited_for_on_a_dead_link(store: Store, link: Link) -> None:
    writer = ChunkWriter(link.address, clock=SystemClock(), deadline_s=0.3, socket_timeout_s=0.1)
    reader = ChunkReader(link.address, clock=SystemClock(), deadline_s=0.3, socket_timeout_s=0.1)
    writer.write(PREFIX, 1, ENV, CHUNK_NO, ROWS)
    assert not reader.read(PREFIX, 1000, ENV * 0 + 1, ENV, CHUNK_NO).missing.any()
    link.swallow()
    with pytest.raises(StoreUnavailable, match="did not store rows within"):
        writer.write(PREFIX, 1, ENV, CHUNK_NO, ROWS)
    with pytest.raises(StoreUnavailable, match="did not fetch rows within"):
        reader.read(PREFIX, 1000, ENV * 0 + 1, ENV, CHUNK_NO)
    link.heal()
    writer.write(PREFIX, 1, ENV, CHUNK_NO, ROWS)
    np.testing.assert_array_equal(reader.read(PREFIX, 1000, ENV * 0 + 1, ENV, CHUNK_NO).payload, ROWS)
    writer.close()
    reader.close()
