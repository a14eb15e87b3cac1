"""Who is in the cell: each process announces a record that expires unless it is renewed.

    announce ──SADD rs:members, SET rs:member:<id> PX 6000──▶ list() = members whose record has not expired

A process that dies is gone after the record's life; nobody has to notice its death. A member that comes or leaves is announced on
`rs:changes`, so that control acts at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec
import redis

from rollstream.store import keys
from rollstream.store.changes import add_change
from rollstream.store.connection import Store

__all__ = ["MemberRecord", "Members", "Role"]

Role: TypeAlias = Literal["actor", "learner", "replay", "control"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRecord:
    """What a process says about itself with every heartbeat.

    Attributes:
        url: where its probes and metrics (and API) answer; empty when it serves nothing.
        version: release of Rollstream that it runs.
        shard: number of a replay shard; None for other roles.
        ready: whether it can do its job now.
        doing: id of the experiment that it works on; empty when idle.
        rss_mb: resident memory in 2**20 bytes.
        detail: whatever else is worth showing, e.g. `env_steps_per_s`.
        operators: of an actor, what each node of its flow did (`rollstream.flow.rates.actor_work`).
    """

    id: str
    role: Role
    url: str = ""
    version: str = ""
    pid: int = 0
    host: str = ""
    shard: int | None = None
    ready: bool = False
    doing: str = ""
    rss_mb: float = 0.0
    detail: Mapping[str, float | str] = field(default_factory=dict)
    operators: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


_decoder = msgspec.json.Decoder(MemberRecord)


class Members:
    """The records of all members of the cell."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def announce(self, record: MemberRecord, *, ttl_s: float = 6.0) -> None:
        """Publish or renew a record. Call it several times within `ttl_s`, which is how long the record outlives its process.

        While the server's memory is full, the record that is there is kept alive as it is: its member still works.
        """
        text = msgspec.json.encode(record)
        ttl_ms = int(ttl_s * 1_000)

        def operation(client: redis.Redis) -> None:
            try:
                publish(client)
            except redis.exceptions.OutOfMemoryError:
                if not client.pexpire(keys.member(record.id), ttl_ms):
                    raise

        def publish(client: redis.Redis) -> None:
            with client.pipeline(transaction=True) as pipeline:
                pipeline.sadd(keys.members(), record.id)
                pipeline.set(keys.member(record.id), text, px=ttl_ms)
                joined = pipeline.execute()[0]
                if joined:
                    add_change(pipeline, "member", record.id)
                    pipeline.execute()

        self._store.run("announce this member", operation)

    def leave(self, member_id: str) -> None:
        """Withdraw a record at once, as a process does that ends in good order."""

        def operation(client: redis.Redis) -> None:
            with client.pipeline(transaction=True) as pipeline:
                pipeline.srem(keys.members(), member_id)
                pipeline.delete(keys.member(member_id))
                add_change(pipeline, "member", member_id)
                pipeline.execute()

        self._store.run("withdraw this member", operation)

    def list(self, *, deadline_s: float | None = None) -> list[MemberRecord]:
        """All members whose record has not expired, ordered by id. Ids without a record are dropped on the way.

        Args:
            deadline_s: as `Store.run`.
        """

        def operation(client: redis.Redis) -> list[MemberRecord]:
            ids = sorted(_members(client))
            texts: Any = client.mget([keys.member(member_id) for member_id in ids]) if ids else []
            gone = [member_id for member_id, text in zip(ids, texts, strict=True) if text is None]
            if gone:
                client.srem(keys.members(), *gone)  # one that was renewed meanwhile adds itself again with its next heartbeat
            return [_decoder.decode(text) for text in texts if text is not None]

        return self._store.run("list the members of the cell", operation, deadline_s=deadline_s)

    def get(self, member_id: str) -> MemberRecord | None:
        """The record of one member; None when there is none or it expired."""

        def operation(client: redis.Redis) -> Any:
            return client.get(keys.member(member_id))

        text = self._store.run("read a member", operation)
        return None if text is None else _decoder.decode(text)


def _members(client: redis.Redis) -> list[str]:
    reply: Any = client.smembers(keys.members())
    return [member_id.decode() for member_id in reply]
