"""Shared fixtures: one real server per test run (per worker of pytest-xdist), emptied before each test that uses it.

`ROLLSTREAM_TEST_REDIS_SERVER=/usr/bin/redis-server` runs everything on that binary instead of the embedded Valkey.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollstream.clock import FakeClock, SystemClock
from rollstream.store import Address, EmbeddedServer, Store


@pytest.fixture(scope="session")
def server_binary() -> Path | None:
    """The server that tests run on; None: the embedded one."""
    named = os.environ.get("ROLLSTREAM_TEST_REDIS_SERVER")
    return Path(named) if named else None


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, server_binary: Path | None) -> Iterator[EmbeddedServer]:
    """A running server, shared by all tests of this process. A test that stops it must start it again."""
    embedded = EmbeddedServer(tmp_path_factory.mktemp("server"), clock=SystemClock(), binary=server_binary)
    embedded.start()
    yield embedded
    embedded.stop()


@pytest.fixture
def address(server: EmbeddedServer) -> Address:
    """Address of the shared server; `store` is what empties it."""
    return server.start()  # heals a server that an earlier test left dead


@pytest.fixture
def store(address: Address) -> Iterator[Store]:
    """A store on the emptied server. Its clock is the real one, because the server's is."""
    opened = Store(address, clock=SystemClock(), deadline_s=10.0, name="test")
    opened.run("empty the database", lambda client: client.flushall())
    yield opened
    opened.close()


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands still until the test moves it."""
    return FakeClock()
