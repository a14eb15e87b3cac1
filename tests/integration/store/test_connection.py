"""The ordinary way to Redis on a real server: retries across a restart, deadlines, errors that come at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import redis
import redis.asyncio

from rollstream.clock import FakeClock, SystemClock
from rollstream.errors import StoreError, StoreRefused, StoreUnavailable
from rollstream.store import Address, AsyncStore, EmbeddedServer, Store, reply_code


@pytest.fixture
def nobody(tmp_path: Path) -> Address:
    """An address where nothing listens."""
    return Address(transport="unix", path=str(tmp_path / "nobody.sock"))


def test_check_says_what_the_server_is(store: Store) -> None:
    info = store.check()
    assert info.product in ("redis", "valkey")
    assert info.used_memory_bytes > 0
    assert info.maxmemory_bytes == 0


def test_a_store_works_again_after_the_server_was_restarted(store: Store, server: EmbeddedServer) -> None:
    store.run("write", lambda client: client.set("rs:a", 1))
    server.restart()
    assert store.run("read", lambda client: client.get("rs:a")) == b"1"


def test_the_reply_of_a_command_that_was_interrupted_is_not_taken_for_that_of_the_next(store: Store) -> None:
    def interrupted(client: redis.Redis) -> None:
        pool = client.connection_pool
        connection = pool.get_connection()
        try:
            connection.send_command("BLPOP", "rs:nothing", "0.5")
            raise KeyboardInterrupt  # as Ctrl-C may, before the reply has come
        finally:
            pool.release(connection)  # as redis-py does

    store.run("write", lambda client: client.set("rs:a", 1))
    with pytest.raises(KeyboardInterrupt):
        store.run("wait", interrupted)
    assert store.run("read", lambda client: client.get("rs:a")) == b"1"


def test_an_operation_is_tried_until_the_server_is_back(store: Store, server: EmbeddedServer) -> None:
    server.stop()
    calls = []

    def operation(client: redis.Redis) -> object:
        calls.append(1)
        if len(calls) == 3:
            server.start()
        return client.ping()

    assert store.run("ask", operation)
    assert len(calls) >= 3


def test_without_a_server_the_deadline_ends_the_tries(nobody: Address, clock: FakeClock) -> None:
    store = Store(nobody, clock=clock, deadline_s=5.0)
    with pytest.raises(StoreUnavailable, match=r"nobody.sock\?db=0 did not ask within 5.0 s"):
        store.run("ask", lambda client: client.ping())
    with pytest.raises(StoreUnavailable, match="did not report its version and memory within 2.0 s"):
        store.check(deadline_s=2.0)
    assert clock.monotonic_s() == pytest.approx(7.0)


def test_an_error_reply_is_raised_at_once_with_its_code(store: Store) -> None:
    store.run("write", lambda client: client.set("rs:a", 1))
    with pytest.raises(StoreError, match="could not push: WRONGTYPE") as caught:
        store.run("push", lambda client: client.rpush("rs:a", 1))
    assert reply_code(caught.value) == "WRONGTYPE"


def test_a_closed_store_opens_again_when_used(store: Store) -> None:
    store.close()
    assert store.run("ask", lambda client: client.ping())


def test_operators_can_see_who_is_connected(store: Store) -> None:
    assert "test" in [client["name"] for client in store.run("list", lambda client: client.client_list())]


def test_the_asyncio_store_checks_runs_and_retries(address: Address, store: Store, server: EmbeddedServer) -> None:
    async def main() -> None:
        opened = AsyncStore(address, clock=SystemClock(), deadline_s=10.0)
        assert (await opened.check()).product in ("redis", "valkey")

        async def write(client: redis.asyncio.Redis) -> object:
            return await client.set("rs:a", 1)

        await opened.run("write", write)
        await asyncio.to_thread(server.restart)
        await opened.run("write", write)
        await opened.close()

    asyncio.run(main())
    assert store.run("read", lambda client: client.get("rs:a")) == b"1"


def test_the_asyncio_store_gives_up_at_the_deadline(nobody: Address) -> None:
    async def main() -> None:
        opened = AsyncStore(nobody, clock=SystemClock(), deadline_s=0.05)
        with pytest.raises(StoreUnavailable, match="did not report its version and memory within"):
            await opened.check()
        await opened.close()

    asyncio.run(main())


def test_a_user_without_permission_is_refused_at_once(tmp_path: Path, server_binary: Path | None) -> None:
    settings = {"user": "actor on >secret-word ~rs:* resetchannels +@connection +get"}
    with EmbeddedServer(tmp_path, clock=SystemClock(), binary=server_binary, settings=settings) as server:
        address = Address(transport="unix", path=server.address.path, username="actor", password="secret-word")
        store = Store(address, clock=SystemClock())
        assert store.run("read", lambda client: client.get("rs:a")) is None
        with pytest.raises(StoreRefused, match="refused to write: .*permission.*; grant the ACL user"):
            store.run("write", lambda client: client.set("rs:a", 1))
        with pytest.raises(StoreRefused, match="refused to read: "):
            store.run("read", lambda client: client.get("other:a"))
        store.close()
