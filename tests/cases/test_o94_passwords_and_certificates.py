"""O94: a password with @ / # breaks the URL, TLS is tied to auth, certificates are not verified, secrets end up in logs.

Here: any password works, percent-encoded or on its own, with or without an ACL user, on both ways to Redis; a server that the
given authority did not sign is refused at once; neither text, log nor error shows the secret.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import numpy as np
import pytest

from rollstream.clock import FakeClock, SystemClock
from rollstream.errors import StoreRefused, StoreUnavailable
from rollstream.store import Address, ChunkReader, ChunkWriter, EmbeddedServer, Store, chunk_prefix, parse_address

SECRET = "p@/#:?% +\"'ü"
ENV = np.zeros(1, np.uint32)
CHUNK_NO = np.zeros(1, np.uint64)


class Certificates(Protocol):
    """What this test needs of the `certificates` fixture."""

    ca: Path
    server: Path
    server_key: Path
    other_ca: Path


@pytest.fixture
def guarded(tmp_path: Path, server_binary: Path | None, free_port: int) -> Iterator[EmbeddedServer]:
    """A server with a password, on a port."""
    with EmbeddedServer(tmp_path, clock=SystemClock(), binary=server_binary, port=free_port) as server:
        store = Store(server.address, clock=SystemClock())
        store.run(
            "make a user",
            lambda client: client.acl_setuser("act:or", enabled=True, passwords=[f"+{SECRET}"], keys=["*"], commands=["+@all"]),
        )
        store.run("set the password", lambda client: client.config_set("requirepass", SECRET))
        store.close()
        yield server


def both_ways_work(address: Address) -> None:
    store = Store(address, clock=SystemClock(), deadline_s=5.0)
    assert store.run("ask", lambda client: client.ping())
    store.close()
    writer = ChunkWriter(address, clock=SystemClock(), deadline_s=5.0)
    assert writer.write(chunk_prefix("t", 0), 1, ENV, CHUNK_NO, np.ones((1, 8), np.uint8), then=[(b"PING",)]) == [b"PONG"]
    writer.close()


def test_any_password_works_in_the_url_and_on_its_own(guarded: EmbeddedServer, free_port: int) -> None:
    encoded = quote(SECRET, safe="")
    path = quote(guarded.address.path)
    both_ways_work(parse_address(f"redis://:{encoded}@127.0.0.1:{free_port}/1"))
    both_ways_work(parse_address(f"redis://act%3Aor:{encoded}@127.0.0.1:{free_port}"))
    both_ways_work(parse_address(f"redis://act%3Aor@127.0.0.1:{free_port}", password=SECRET))
    both_ways_work(parse_address(f"unix://{path}?db=2&username=act%3Aor&password={encoded}"))
    both_ways_work(parse_address(f"unix://{path}", password=SECRET))


@pytest.mark.parametrize("password", [None, "wrong-" + SECRET])
def test_a_wrong_or_missing_password_is_refused_at_once(guarded: EmbeddedServer, password: str | None) -> None:
    clock = FakeClock()
    address = Address(transport="unix", path=guarded.address.path, password=password)
    with pytest.raises(StoreRefused, match="refused to ask: .*; check user and password"):
        Store(address, clock=clock).run("ask", lambda client: client.ping())
    with pytest.raises(StoreRefused, match="refused to fetch rows: .*; check user and password"):
        ChunkReader(address, clock=clock).read(chunk_prefix("t", 0), 8, ENV, ENV, CHUNK_NO)
    assert clock.monotonic_s() == 0.0


def test_a_password_for_a_server_that_has_none_is_refused_at_once(address: Address) -> None:
    with_password = Address(transport="unix", path=address.path, password=SECRET)
    for attempt in (
        lambda: Store(with_password, clock=FakeClock()).run("ask", lambda client: client.ping()),
        lambda: ChunkReader(with_password, clock=FakeClock()).read(chunk_prefix("t", 0), 8, ENV, ENV, CHUNK_NO),
    ):
        with pytest.raises(StoreRefused, match="refused to") as caught:
            attempt()
        assert SECRET not in str(caught.value)


def test_no_error_and_no_log_line_shows_the_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "word-that-must-not-show"
    address = parse_address(f"redis://actor:{secret}@127.0.0.1:1/0")
    clock = FakeClock()
    store = Store(address, clock=clock, deadline_s=30.0)
    with pytest.raises(StoreUnavailable, match="redis://actor@127.0.0.1:1/0 did not ask within") as caught:
        store.run("ask", lambda client: client.ping())
    assert "waiting for Redis at redis://actor@127.0.0.1:1/0" in caplog.text
    for text in (str(caught.value), repr(caught.value.__cause__), caplog.text, str(address), repr(address)):
        assert secret not in text


@pytest.mark.redis7
def test_a_server_that_another_authority_signed_is_refused_at_once(
    tmp_path: Path, redis7_binary: Path, certificates: Certificates, free_port: int
) -> None:
    settings = {
        "tls-port": str(free_port),
        "tls-cert-file": str(certificates.server),
        "tls-key-file": str(certificates.server_key),
        "tls-ca-cert-file": str(certificates.ca),
        "tls-auth-clients": "no",
    }
    with EmbeddedServer(tmp_path, clock=SystemClock(), binary=redis7_binary, settings=settings):
        both_ways_work(parse_address(f"rediss://localhost:{free_port}", ca_file=certificates.ca))
        clock = FakeClock()
        distrusted = [
            parse_address(f"rediss://localhost:{free_port}", ca_file=certificates.other_ca),  # not signed by it
            parse_address(f"rediss://localhost:{free_port}"),  # nor by an authority of the system
            parse_address(f"rediss://127.0.0.1:{free_port}", ca_file=certificates.ca),  # a name it was not made for
        ]
        for address in distrusted:
            with pytest.raises(StoreRefused, match="refused to ask: .*; check the host name and ca_file"):
                Store(address, clock=clock).run("ask", lambda client: client.ping())
            with pytest.raises(StoreRefused, match="refused to fetch rows: .*; check the host name and ca_file"):
                ChunkReader(address, clock=clock).read(chunk_prefix("t", 0), 8, ENV, ENV, CHUNK_NO)
        assert clock.monotonic_s() == 0.0
