"""Leases: one owner at a time, by a key that expires, with a fencing token that only grows.

    acquire ──▶ held ──renew──▶ held ──release──▶ free
                 │ not renewed within ttl_s
                 └──▶ free ──acquire by another──▶ the old owner's renew and guarded writes raise LeaseLost

A lease alone cannot stop an owner that slept through its expiry from writing once more. So what must only be written by the
owner goes through `guarded`: a transaction that Redis executes only if the lease is still this one at that moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis
from redis.client import Pipeline

from rollstream.errors import LeaseLost
from rollstream.store.connection import Store

__all__ = ["Lease"]


class Lease:
    """A lease that this process acquired. Made by `Lease.acquire`; may be used from several threads.

    Attributes:
        token: the fencing token: larger than that of every earlier owner.
    """

    def __init__(self, store: Store, *, key: str, token_key: str, owner: str, ttl_s: float, token: int) -> None:
        self.key = key
        self.owner = owner
        self.token = token
        self.ttl_s = ttl_s
        self._store = store
        self._token_key = token_key
        self._value = _value(token, owner)
        self._renewed_s = store.clock.monotonic_s()

    @staticmethod
    def acquire(store: Store, *, key: str, token_key: str, owner: str, ttl_s: float, inherit: bool = False) -> Lease | None:
        """Take the lease if it is free; None when another owner has it.

        Args:
            key: where the lease lives while it is held.
            token_key: counter of tokens; outlives the lease.
            owner: shown to people, and to this owner's own retries.
            ttl_s: seconds without renewal after which others may take it.
            inherit: take over at once what an earlier process of the same name holds. For names that only one living process
                has (a supervisor's child, a StatefulSet's pod); should the earlier one live after all, its token is fenced off.
        """
        tried: set[bytes] = set()

        def operation(client: redis.Redis) -> int | None:
            with client.pipeline(transaction=True) as pipeline:
                pipeline.watch(key, token_key)  # type: ignore[no-untyped-call]
                held: bytes | None = pipeline.get(key)  # type: ignore[assignment]
                if held is not None and not (inherit and _owner(held) == owner):
                    # our own, when the reply of an earlier attempt was lost on the way
                    return _token(held) if held in tried else None
                token = int(pipeline.get(token_key) or 0) + 1
                value = _value(token, owner)
                tried.add(value)
                pipeline.multi()
                pipeline.set(token_key, token)
                pipeline.set(key, value, px=_milliseconds(ttl_s))
                pipeline.execute()
                return token

        started_s = store.clock.monotonic_s()
        token = store.run(f"take the lease {key}", operation)
        if token is None:
            return None
        lease = Lease(store, key=key, token_key=token_key, owner=owner, ttl_s=ttl_s, token=token)
        lease._renewed_s = started_s
        return lease

    @staticmethod
    def owner_of(store: Store, *, key: str) -> str | None:
        """Who holds the lease now; None when it is free."""
        held = store.run(f"read the lease {key}", lambda client: client.get(key))
        return _owner(held) if isinstance(held, bytes) else None

    def remaining_s(self) -> float:
        """Seconds for which it is surely still ours, by this process's clock; 0 when it may be gone."""
        return max(0.0, self._renewed_s + self.ttl_s - self._store.clock.monotonic_s())

    def renew(self, *, deadline_s: float | None = None) -> None:
        """Hold it for another `ttl_s`. One that ran out is taken back if nobody had it in between.

        While it is held, this works also when the server's memory is full: nothing new is written.

        Raises:
            LeaseLost: another owner has or had it.
        """

        def operation(client: redis.Redis) -> None:
            with client.pipeline(transaction=True) as pipeline:
                pipeline.watch(self.key, self._token_key)  # type: ignore[no-untyped-call]
                if self._require_ours(pipeline):
                    # Not in a transaction: Redis 7.0 queues no command of any kind while its memory is full. Should the lease run
                    # out just now and be taken by another, theirs is prolonged, and we notice.
                    pipeline.pexpire(self.key, _milliseconds(self.ttl_s))
                    if self._require_ours(pipeline):
                        return
                pipeline.multi()
                pipeline.set(self.key, self._value, px=_milliseconds(self.ttl_s))
                pipeline.execute()

        started_s = self._store.clock.monotonic_s()
        self._store.run(f"renew the lease {self.key}", operation, deadline_s=deadline_s)
        self._renewed_s = started_s

    def _require_ours(self, pipeline: Pipeline) -> bool:
        """Whether the lease is held; raises when another has or had it."""
        held: bytes | None = pipeline.get(self.key)  # type: ignore[assignment]
        newest = int(pipeline.get(self._token_key) or 0)
        if held not in (None, self._value) or newest != self.token:
            raise self._lost(held)
        return held is not None

    def release(self) -> None:
        """Give it back; nothing happens when it is no longer ours."""

        def operation(client: redis.Redis) -> None:
            with client.pipeline(transaction=True) as pipeline:
                pipeline.watch(self.key)  # type: ignore[no-untyped-call]
                if pipeline.get(self.key) == self._value:
                    pipeline.multi()
                    pipeline.delete(self.key)
                    pipeline.execute()

        self._store.run(f"release the lease {self.key}", operation)
        self._renewed_s = -self.ttl_s

    def guarded(self, what: str, fill: Callable[[Pipeline], object], *, deadline_s: float | None = None) -> list[Any]:
        """Execute the commands that `fill` queues, as one transaction, only while the lease is ours.

        Args:
            what: a verb phrase, as for `Store.run`.
            fill: queues commands; may be called again when the connection is lost, so they must be idempotent.

        Raises:
            LeaseLost: it is not ours any more; nothing was executed.
        """

        def operation(client: redis.Redis) -> list[Any]:
            with client.pipeline(transaction=True) as pipeline:
                pipeline.watch(self.key)  # type: ignore[no-untyped-call]
                held: bytes | None = pipeline.get(self.key)  # type: ignore[assignment]
                if held != self._value:
                    raise self._lost(held)
                pipeline.multi()
                fill(pipeline)
                replies: list[Any] = pipeline.execute()
                return replies

        return self._store.run(what, operation, deadline_s=deadline_s)

    def _lost(self, held: bytes | None) -> LeaseLost:
        holder = f"held by {held.decode()}" if held else "expired"
        return LeaseLost(
            f"lease {self.key} of {self.owner} (token {self.token}) was lost: it is now {holder}; stop writing for it"
        )


def _value(token: int, owner: str) -> bytes:
    return f"{token}:{owner}".encode()


def _owner(value: bytes) -> str:
    return value.decode().split(":", 1)[1]


def _token(value: bytes) -> int:
    return int(value.split(b":", 1)[0])


def _milliseconds(duration_s: float) -> int:
    return max(1, round(duration_s * 1000))
