"""O92: a client process dies of "OOM command not allowed", or an eviction policy deletes index keys behind everyone's back.

Here: a server that evicts is refused at start; a full one is waited for (it is back-pressure), then named as full; what was freed
can be written at once; a row that vanished is reported as missing and never mistaken for another.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rollstream.clock import FakeClock, SystemClock
from rollstream.errors import StoreRefused, StoreUnavailable
from rollstream.store import ChunkReader, ChunkWriter, EmbeddedServer, Store, chunk_prefix

PREFIX = chunk_prefix("t", 0)
ENV = np.zeros(4000, np.uint32)
CHUNK_NO = np.arange(4000, dtype=np.uint64)
ROWS = np.ones((4000, 4000), np.uint8)
WHO = np.ones(4000, np.uint32)


@pytest.fixture
def small(tmp_path: Path, server_binary: Path | None) -> Iterator[Store]:
    """A store on a server of its own with room for 12 MB."""
    settings = {"maxmemory": "12mb", "appendonly": "no"}
    with EmbeddedServer(tmp_path, clock=SystemClock(), binary=server_binary, settings=settings) as server:
        opened = Store(server.address, clock=SystemClock(), deadline_s=5.0)
        yield opened
        opened.close()


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru"])
def test_a_server_that_evicts_is_refused_at_start(small: Store, policy: str) -> None:
    small.run("set the policy", lambda client: client.config_set("maxmemory-policy", policy))
    with pytest.raises(StoreRefused, match=f"has maxmemory-policy {policy}.*set maxmemory-policy noeviction"):
        small.check()


def test_a_full_server_is_named_as_full_and_works_again_once_there_is_room(small: Store) -> None:
    assert small.check().maxmemory_bytes == 12 << 20
    clock = FakeClock()
    writer = ChunkWriter(small.address, clock=clock, deadline_s=3.0)
    with pytest.raises(StoreUnavailable, match="could not store rows for .* s: out of memory: raise maxmemory or shrink tables"):
        writer.write(PREFIX, 1, ENV, CHUNK_NO, ROWS)
    assert clock.monotonic_s() >= 3.0

    reader = ChunkReader(small.address, clock=SystemClock(), deadline_s=5.0)
    found = reader.read(PREFIX, 4000, WHO, ENV, CHUNK_NO)
    assert 0 < found.missing.sum() < 4000
    assert (found.payload[~found.missing] == 1).all()
    assert reader.unlink(PREFIX, WHO, ENV, CHUNK_NO) == 4000 - found.missing.sum()
    writer.write(PREFIX, 1, ENV[:100], CHUNK_NO[:100], ROWS[:100])
    assert reader.read(PREFIX, 4000, WHO, ENV, CHUNK_NO).missing.sum() == 3900
    writer.close()
    reader.close()


def test_ordinary_writes_to_a_full_server_are_named_too(small: Store) -> None:
    with pytest.raises(StoreUnavailable, match="could not fill for .* s: out of memory: raise maxmemory or shrink tables"):
        for number in range(1000):
            small.run("fill", lambda client, number=number: client.set(f"rs:{number}", b"x" * 50_000), deadline_s=0.05)


@pytest.mark.parametrize("chunks", [100, 4000])
def test_a_full_server_never_has_a_log_entry_without_its_rows(small: Store, chunks: int) -> None:
    writer = ChunkWriter(small.address, clock=FakeClock(), deadline_s=3.0)
    entries = 0
    with pytest.raises(StoreUnavailable, match="out of memory: raise maxmemory or shrink tables"):
        for first in range(0, 100 * 4000, chunks):
            chunk_no = np.arange(first, first + chunks, dtype=np.uint64)
            writer.write(PREFIX, 1, ENV[:chunks], chunk_no, ROWS[:chunks], then=[(b"XADD", "rs:log", b"*", b"i", b"x")])
            entries += 1
    assert small.run("count", lambda client: client.xlen("rs:log")) == entries
    assert entries == (0 if chunks == 4000 else pytest.approx(25, abs=12))
    writer.close()
