"""TLS: both ways to Redis verify the server, and show a certificate when the server asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import StoreError
from rollstream.store import Address, ChunkReader, ChunkWriter, EmbeddedServer, Store, chunk_prefix, parse_address

pytestmark = pytest.mark.redis7


class Certificates(Protocol):
    ca: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path


@pytest.fixture
def url(tmp_path: Path, redis7_binary: Path, certificates: Certificates, free_port: int) -> Iterator[str]:
    """A server that wants a client's certificate and a password."""
    settings = {
        "tls-port": str(free_port),
        "tls-cert-file": str(certificates.server),
        "tls-key-file": str(certificates.server_key),
        "tls-ca-cert-file": str(certificates.ca),
        "tls-auth-clients": "yes",
        "requirepass": "secret-word",
    }
    with EmbeddedServer(tmp_path, clock=SystemClock(), binary=redis7_binary, settings=settings):
        yield f"rediss://:secret-word@localhost:{free_port}/3"


@pytest.fixture
def tls_address(url: str, certificates: Certificates) -> Address:
    return parse_address(url, ca_file=certificates.ca, cert_file=certificates.client, key_file=certificates.client_key)


def test_ordinary_commands_go_over_mutual_tls(tls_address: Address) -> None:
    store = Store(tls_address, clock=SystemClock())
    assert store.check().product in ("redis", "valkey")
    store.close()


@pytest.mark.parametrize(("chunks", "chunk_bytes"), [(1, 8), (3000, 400), (50, 40_000)])
def test_rows_go_over_mutual_tls(tls_address: Address, chunks: int, chunk_bytes: int) -> None:
    writer = ChunkWriter(tls_address, clock=SystemClock())
    reader = ChunkReader(tls_address, clock=SystemClock())
    env, chunk_no = (np.arange(chunks) % 8).astype(np.uint32), np.arange(chunks, dtype=np.uint64)
    payload = np.random.Generator(np.random.PCG64(0)).integers(0, 256, (chunks, chunk_bytes), dtype=np.uint8)
    prefix = chunk_prefix("t", 0)
    assert writer.write(prefix, 7, env, chunk_no, payload, then=[(b"PING",)]) == [b"PONG"]
    who = np.full(chunks + 1, 7, np.uint32)
    found = reader.read(prefix, chunk_bytes, who, np.append(env, np.uint32(99)), np.append(chunk_no, np.uint64(99)))
    assert found.missing.tolist() == [False] * chunks + [True]
    np.testing.assert_array_equal(found.payload[:-1], payload)
    writer.close()
    reader.close()


def test_a_client_without_its_certificate_gets_no_answer(url: str, certificates: Certificates) -> None:
    store = Store(parse_address(url, ca_file=certificates.ca), clock=SystemClock(), deadline_s=0.1)
    with pytest.raises(StoreError, match="ask"):
        store.run("ask", lambda client: client.ping())
    store.close()
