"""Which actor serves which experiment. Control writes, actors read: they wait on `rs:changes` and look here when it moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import redis

from rollstream.store import keys
from rollstream.store.changes import add_change
from rollstream.store.connection import Store

__all__ = ["Assignment", "Assignments"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What one actor is to do.

    Attributes:
        experiment: id of the experiment that it serves.
        ordinal: its number among the actors of that experiment, from 0; seeds and exploration schedules depend on it.
        generation: counts up whenever the same actor gets a new assignment, so that it starts afresh even with equal numbers.
    """

    experiment: str
    ordinal: int
    generation: int


_decoder = msgspec.json.Decoder(Assignment)


class Assignments:
    """The assignment of every actor of the cell."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def assign(self, member_id: str, assignment: Assignment | None) -> None:
        """Give the actor this work, or none. Wakes the actors only when that changes something."""
        text = None if assignment is None else msgspec.json.encode(assignment)

        def operation(client: redis.Redis) -> None:
            if client.hget(keys.assignments(), member_id) == text:
                return
            with client.pipeline(transaction=True) as pipeline:
                if text is None:
                    pipeline.hdel(keys.assignments(), member_id)
                else:
                    pipeline.hset(keys.assignments(), member_id, text)
                add_change(pipeline, "assignment", member_id)
                pipeline.execute()

        self._store.run("assign an actor", operation)

    def get(self, member_id: str) -> Assignment | None:
        """What the actor is to do; None: nothing."""

        def operation(client: redis.Redis) -> Any:
            return client.hget(keys.assignments(), member_id)

        text = self._store.run("read an assignment", operation)
        return None if text is None else _decoder.decode(text)

    def all(self) -> dict[str, Assignment]:
        """All assignments by member id, also those of members that are gone: control takes these back."""

        def operation(client: redis.Redis) -> Any:
            return client.hgetall(keys.assignments())

        reply = self._store.run("read all assignments", operation)
        return {member_id.decode(): _decoder.decode(text) for member_id, text in sorted(reply.items())}
