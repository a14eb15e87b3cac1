"""The learner's end of an edge as a flow sees it: batches instead of messages, and which actors a barrier waits for."""

from __future__ import annotations

import threading

from rollstream.clock import Clock
from rollstream.edges import EdgeMessage, EdgeReader
from rollstream.errors import StoreError
from rollstream.spaces import Batch
from rollstream.store.assignments import Assignments
from rollstream.store.members import Members

__all__ = ["LearnerEdge"]

LOOK_S = 0.3
"""How old the list of live actors may be."""


class LearnerEdge:
    """Implements `rollstream.flow.sides.EdgeSource` over Redis.

    An actor counts as live for a barrier once its first message was read, as long as its member record lives and it is assigned to
    the experiment. So a run starts with the first actor that is there, and one that still makes its environment holds nobody up.
    """

    def __init__(self, reader: EdgeReader, *, experiment: str, members: Members, assignments: Assignments, clock: Clock) -> None:
        self._reader = reader
        self._experiment = experiment
        self._members = members
        self._assignments = assignments
        self._clock = clock
        self._lock = threading.Lock()
        self._taken: dict[int, EdgeMessage] = {}
        self._joined: set[str] = set()
        self._live: set[str] = set()
        self._looked_s = -LOOK_S

    def next(self, timeout_s: float) -> Batch | None:
        message = self._reader.next(timeout_s=timeout_s)
        return None if message is None else self._take(message)

    def at_hand(self) -> Batch | None:
        message = self._reader.at_hand()
        return None if message is None else self._take(message)

    def ack(self, *batches: Batch) -> None:
        with self._lock:
            messages = [self._taken.pop(id(batch)) for batch in batches]
        self._reader.ack(messages)

    def live_actors(self) -> set[str]:
        now_s = self._clock.monotonic_s()
        if now_s - self._looked_s >= LOOK_S:
            try:
                self._live = self._look()
            except StoreError:
                return self._live  # Redis is away: nobody is declared dead for that
            self._looked_s = now_s
        return self._live

    def ready(self) -> bool:
        """Only inline flows ask; here a message may always come."""
        return True

    @property
    def contributors(self) -> set[str]:
        """All actors whose messages were read."""
        with self._lock:
            return set(self._joined)

    def _take(self, message: EdgeMessage) -> Batch:
        with self._lock:
            self._taken[id(message.batch)] = message
            if message.batch.actor not in self._joined:
                self._joined.add(message.batch.actor)
                self._looked_s = -LOOK_S
        return message.batch

    def _look(self) -> set[str]:
        alive = {record.id for record in self._members.list() if record.role == "actor"}
        assigned = {member for member, assignment in self._assignments.all().items() if assignment.experiment == self._experiment}
        return self._joined & alive & assigned
