"""The ordinary way to Redis: a pooled client with time-outs, and `run`, which retries until a deadline.

    store.run("read the spec", lambda client: client.get(keys.experiment_spec(experiment_id)))

No read is without a time-out: a link that swallows bytes (a lost conntrack entry, a dead node) is noticed after
`SOCKET_TIMEOUT_S`, which is longer than any command may block on the server (`MAX_BLOCK_S`). Idle connections are checked before
use, so that one which a middlebox cut is replaced and not trusted.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rollstream.clock import Clock
from rollstream.errors import StoreRefused
from rollstream.store.address import Address
from rollstream.store.retry import Attempts

if TYPE_CHECKING:
    import redis.asyncio

__all__ = ["MAX_BLOCK_S", "SOCKET_TIMEOUT_S", "AsyncStore", "ServerInfo", "Store", "judge_server", "keepalive_options"]

T = TypeVar("T")

SOCKET_TIMEOUT_S = 8.0
"""Seconds without a byte after which a connection counts as dead."""
MAX_BLOCK_S = 5.0
"""Longest that one command (`BLPOP`, `XREAD BLOCK`) may wait on the server; longer waits are made of several."""
_CONNECT_TIMEOUT_S = 5.0
_HEALTH_CHECK_EVERY_S = 15
_OLDEST_VERSION = (7, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What a server says about itself."""

    product: str
    """`redis` or `valkey`."""
    version: str
    """The product's own version, e.g. `9.1.2`."""
    maxmemory_bytes: int
    """Limit on its memory; 0: none."""
    used_memory_bytes: int
    maxmemory_policy: str

    def __str__(self) -> str:
        return f"{self.product} {self.version}"


class Store:
    """One process's way to Redis for one purpose. Thread-safe; connects when first used.

    Args:
        deadline_s: how long `run` and `check` try by default.
        name: shown by `CLIENT LIST`, so that an operator sees who is connected.
        socket_timeout_s: seconds without a byte after which a connection counts as dead.

    Attributes:
        max_block_s: longest that one blocking command may wait on the server through this store.
    """

    def __init__(
        self,
        address: Address,
        *,
        clock: Clock,
        deadline_s: float = 30.0,
        name: str = "rollstream",
        socket_timeout_s: float = SOCKET_TIMEOUT_S,
    ) -> None:
        self.address = address
        self.clock = clock
        self.deadline_s = deadline_s
        self.name = name
        self.max_block_s = min(MAX_BLOCK_S, 0.625 * socket_timeout_s)
        self.client: redis.Redis = redis.Redis(**_client_arguments(address, name, socket_timeout_s), retry=Retry(NoBackoff(), 0))

    def run(self, what: str, operation: Callable[[redis.Redis], T], *, deadline_s: float | None = None) -> T:
        """Run `operation(client)` until it succeeds; it may run more than once, so it must be idempotent.

        Args:
            what: a verb phrase that completes "Redis could not ...".
            deadline_s: how long to try; an attempt under way is not cut short, a dead link costs `socket_timeout_s` at most.

        Raises:
            StoreRefused: password, permission or certificate; at once.
            StoreError: an error reply that would come again; at once. `reply_code` tells which.
            StoreUnavailable: no success before the deadline.
        """
        attempts = Attempts(
            what, str(self.address), clock=self.clock, deadline_s=self.deadline_s if deadline_s is None else deadline_s
        )
        while True:
            try:
                return operation(self.client)
            except (redis.RedisError, OSError) as error:
                self.clock.sleep(attempts.failed(error))
            except (KeyboardInterrupt, SystemExit):
                # The connection may be half made, or about to get a reply that the next command would take for its own.
                self.client.connection_pool.disconnect(inuse_connections=False)
                raise

    def check(self, *, deadline_s: float | None = None) -> ServerInfo:
        """Ask the server what it is, and refuse one that would lose or never had what Rollstream needs.

        Raises:
            StoreRefused: older than 7.0, or an eviction policy that deletes keys when memory is short.
        """
        reply = self.run("report its version and memory", _ask, deadline_s=deadline_s)
        return judge_server(reply, str(self.address))

    def close(self) -> None:
        """Close all connections; the store connects again when used again."""
        self.client.close()
        self.client.connection_pool.disconnect()


class AsyncStore:
    """`Store` for asyncio; one event loop."""

    def __init__(
        self,
        address: Address,
        *,
        clock: Clock,
        deadline_s: float = 30.0,
        name: str = "rollstream",
        socket_timeout_s: float = SOCKET_TIMEOUT_S,
    ) -> None:
        from redis import asyncio as redis_asyncio
        from redis.asyncio.retry import Retry as AsyncRetry

        self.address = address
        self.clock = clock
        self.deadline_s = deadline_s
        self.name = name
        self.max_block_s = min(MAX_BLOCK_S, 0.625 * socket_timeout_s)
        self.client: redis.asyncio.Redis = redis_asyncio.Redis(
            **_client_arguments(address, name, socket_timeout_s), retry=AsyncRetry(NoBackoff(), 0)
        )

    async def run(
        self, what: str, operation: Callable[[redis.asyncio.Redis], Awaitable[T]], *, deadline_s: float | None = None
    ) -> T:
        """As `Store.run`, with a coroutine function; cancelling it cancels the wait."""
        import asyncio

        attempts = Attempts(
            what, str(self.address), clock=self.clock, deadline_s=self.deadline_s if deadline_s is None else deadline_s
        )
        while True:
            try:
                return await operation(self.client)
            except (redis.RedisError, OSError) as error:
                await asyncio.sleep(attempts.failed(error))

    async def check(self, *, deadline_s: float | None = None) -> ServerInfo:
        """As `Store.check`."""
        reply = await self.run("report its version and memory", lambda client: client.info(), deadline_s=deadline_s)
        return judge_server(reply, str(self.address))

    async def close(self) -> None:
        """Close all connections."""
        await self.client.aclose()


def _ask(client: redis.Redis) -> dict[str, Any]:
    reply: dict[str, Any] = client.info()
    return reply


def judge_server(reply: dict[str, Any], where: str) -> ServerInfo:
    """Read the reply to `INFO`, or refuse the server; see `Store.check`."""
    compatible = str(reply.get("redis_version", "0.0"))
    info = ServerInfo(
        product="valkey" if "valkey_version" in reply else "redis",
        version=str(reply.get("valkey_version", compatible)),
        maxmemory_bytes=int(reply.get("maxmemory", 0)),
        used_memory_bytes=int(reply.get("used_memory", 0)),
        maxmemory_policy=str(reply.get("maxmemory_policy", "noeviction")),
    )
    version = tuple(int(part) for part in compatible.split(".")[:2] if part.isdecimal())
    if version < _OLDEST_VERSION:
        raise StoreRefused(f"Redis at {where} has version {info}; Rollstream needs Redis 7.0 or Valkey 8 or newer")
    if info.maxmemory_policy != "noeviction":
        raise StoreRefused(
            f"Redis at {where} has maxmemory-policy {info.maxmemory_policy}, which deletes rows and weights "
            "when memory is short; set maxmemory-policy noeviction"
        )
    return info


def _client_arguments(address: Address, name: str, socket_timeout_s: float) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "db": address.db,
        "username": address.username,
        "password": address.password,
        "client_name": name.replace(" ", "-"),
        "protocol": 2,  # the same shape of replies from every server and every release of the client
        "driver_info": None,
        "decode_responses": False,
        "socket_timeout": socket_timeout_s,
        "socket_connect_timeout": min(_CONNECT_TIMEOUT_S, socket_timeout_s),
        "health_check_interval": _HEALTH_CHECK_EVERY_S,
    }
    if address.transport == "unix":
        return arguments | {"unix_socket_path": address.path}
    arguments |= {
        "host": address.host,
        "port": address.port,
        "socket_keepalive": True,
        "socket_keepalive_options": keepalive_options(),
    }
    if address.transport == "tls":
        arguments |= {
            "ssl": True,
            "ssl_ca_certs": str(address.ca_file) if address.ca_file else None,
            "ssl_certfile": str(address.cert_file) if address.cert_file else None,
            "ssl_keyfile": str(address.key_file) if address.key_file else None,
            "ssl_cert_reqs": "required",
            "ssl_check_hostname": True,
        }
    return arguments


def keepalive_options() -> dict[int, int]:
    """TCP keep-alive after 15 s, then every 5 s, dead after 3: keeps middleboxes from forgetting an idle connection."""
    wanted = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
    return {getattr(socket, option): value for option, value in wanted.items() if hasattr(socket, option)}
