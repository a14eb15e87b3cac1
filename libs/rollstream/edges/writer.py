"""The actor's end of an edge: sends batches, and waits when too many of them are not acknowledged yet.

    send ──▶ room? ──no──▶ wait for credit (deadline, both sides named)
              └──yes─▶ XADD ──▶ in flight ──reader's ack──▶ room

A message that Redis lost (flushed, failed over to a lagging replica) will never be acknowledged. A writer that waits in vain
looks whether its oldest messages still exist and counts those that do not, so that one loss does not stop it for ever.

Messages can be large, so they go out on a raw connection, straight from the buffer that they were encoded into.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from rollstream.clock import Deadline
from rollstream.edges.message import encode_batch
from rollstream.errors import ConfigError, DeadlineExceeded
from rollstream.metrics import Counters, Waits
from rollstream.spaces import Batch
from rollstream.store import Credit, Store, keys
from rollstream.store.connection import SOCKET_TIMEOUT_S
from rollstream.store.raw_connection import RawConnection, RawLink, raise_first_error

__all__ = ["EdgeWriter"]

_LOG = logging.getLogger("rollstream.edges")
_SLICE_S = 1.0
_FIRST_LOOK_S = 3.0
_LONGEST_LOOK_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A message that is not acknowledged yet."""

    sequence: int
    entry_id: bytes
    env_steps: int


class EdgeWriter:
    """Sends batches over one edge. Not thread-safe: one thread sends.

    Args:
        experiment, name: which edge.
        in_flight: messages that may be unacknowledged at once; more hide the learner's pauses and make data older.
        actor: member id; stands in every message and in errors.
        writer: id of this incarnation; None asks Redis for one that was never used.
        spec_hash: `RowSpec.hash` of the columns; the reader refuses another.
        counters: take `edge_messages_lost`, and `env_steps_dropped{lost}` for the steps in them.
        waits: is told who waits for whom.
    """

    def __init__(
        self,
        store: Store,
        *,
        experiment: str,
        name: str,
        in_flight: int,
        actor: str,
        writer: int | None = None,
        spec_hash: str = "",
        counters: Counters | None = None,
        waits: Waits | None = None,
    ) -> None:
        if in_flight < 1:
            raise ConfigError(f"in_flight of edge {name} must be >= 1, got {in_flight}; 2 lets an actor work while one is read")
        self._store = store
        self._experiment = experiment
        self._name = name
        self._in_flight = in_flight
        self._actor = actor
        self._spec_hash = spec_hash
        self._counters = counters or Counters()
        self._waits = waits or Waits(store.clock)
        self._key = keys.edge(experiment, name)
        self.writer = self._new_writer() if writer is None else writer
        self._credit = Credit(
            store,
            credit_key=keys.edge_credit(experiment, name),
            wake_key=lambda writer: keys.edge_wake(experiment, name, writer),
        )
        self._link = RawLink(store.address, clock=store.clock, deadline_s=store.deadline_s, socket_timeout_s=SOCKET_TIMEOUT_S)
        key = self._key.encode()
        self._command = b"*5\r\n$4\r\nXADD\r\n$%d\r\n%b\r\n$1\r\n*\r\n$1\r\nm\r\n" % (len(key), key)
        self._sent: deque[_Sent] = deque()
        self._sequence = 0
        self._acknowledged = 0
        self._stalled_since_s: float | None = None
        self._look_after_s = _FIRST_LOOK_S

    def send(self, batch: Batch, *, deadline_s: float, shape: tuple[int, int] = (0, 0)) -> int:
        """Send the batch as soon as there is room. After an error, send the same batch again: it arrives once.

        Args:
            shape: (T, N) of the rollout that it came from.

        Returns:
            Its sequence number, counted from 1.

        Raises:
            DeadlineExceeded: the reader acknowledged nothing in time; names both sides.
            StoreUnavailable: Redis did not take it within the store's own deadline.
        """
        deadline = Deadline(self._store.clock, after_s=deadline_s)
        if not self.wait_for_room(timeout_s=deadline_s):
            raise self._too_late(deadline, f"acknowledge one of {len(self._sent)} messages in flight")
        sequence = self._sequence + 1
        named = batch if batch.actor else replace(batch, actor=self._actor)
        message = encode_batch(named, spec_hash=self._spec_hash, writer=self.writer, sequence=sequence, shape=shape)
        entry_id = self._add(message)
        self._sequence = sequence
        self._sent.append(_Sent(sequence=sequence, entry_id=entry_id, env_steps=batch.env_steps))
        return sequence

    def wait_for_room(self, *, timeout_s: float) -> bool:
        """Wait until a message may be sent; False when `timeout_s` passed first. For a caller that also watches a stop signal."""
        return self._wait_until(self._in_flight - 1, timeout_s=timeout_s)

    def drain(self, *, deadline_s: float) -> None:
        """Wait until everything is acknowledged: what a process does before it leaves.

        Raises:
            DeadlineExceeded: the reader did not acknowledge everything in time; what was sent stays in the stream.
        """
        deadline = Deadline(self._store.clock, after_s=deadline_s)
        if not self._wait_until(0, timeout_s=deadline_s):
            raise self._too_late(deadline, f"acknowledge the last {len(self._sent)} messages")

    def acknowledged(self) -> int:
        """Newest sequence number up to which everything is acknowledged (or lost)."""
        self._settle(self._credit.acknowledged(self.writer))
        return self._acknowledged

    @property
    def unacknowledged(self) -> int:
        """Messages in flight, as far as this writer has heard."""
        return len(self._sent)

    def close(self) -> None:
        """Close the connection; what was sent stays in the stream."""
        self._link.close()

    # -- waiting

    def _wait_until(self, at_most: int, *, timeout_s: float) -> bool:
        """Wait until at most so many messages are in flight."""
        if len(self._sent) <= at_most:
            return True
        self.acknowledged()
        if len(self._sent) <= at_most:
            return True
        deadline = Deadline(self._store.clock, after_s=timeout_s)
        with self._waits.waiting(who=self._actor, for_whom=f"the learner to read edge {self._name}") as wait:
            while len(self._sent) > at_most and not deadline.passed():
                needed = self._sent[len(self._sent) - at_most - 1].sequence
                slice_s = min(_SLICE_S, deadline.remaining_s())
                self._settle(self._credit.wait(self.writer, at_least=needed, deadline_s=slice_s))
                wait.still()
                self._look_for_losses()
        return len(self._sent) <= at_most

    def _settle(self, acknowledged: int) -> None:
        self._acknowledged = max(self._acknowledged, acknowledged)
        while self._sent and self._sent[0].sequence <= self._acknowledged:
            self._sent.popleft()
            self._stalled_since_s = None

    def _look_for_losses(self) -> None:
        """While nothing is acknowledged: look after 3 s, then ever more rarely. Also over several short waits."""
        now_s = self._store.clock.monotonic_s()
        if self._stalled_since_s is None:
            self._stalled_since_s = now_s
            self._look_after_s = _FIRST_LOOK_S
        elif now_s - self._stalled_since_s >= self._look_after_s:
            self._look_after_s += min(_LONGEST_LOOK_S, self._look_after_s)
            self._give_up_lost()

    def _give_up_lost(self) -> None:
        """Forget, and count, the oldest messages that are neither in the stream nor acknowledged."""
        while self._sent:
            oldest = self._sent[0]
            if self._exists(oldest.entry_id):
                return
            # An acknowledgement deletes the message and grants the credit in one transaction: look again, now it must show.
            if self.acknowledged() >= oldest.sequence:
                continue
            self._counters.add("edge_messages_lost")
            self._counters.add("env_steps_dropped", oldest.env_steps, reason="lost")
            _LOG.warning(
                "message %d of %s on edge %s of %s was lost in Redis before it was read (%d env steps)",
                oldest.sequence, self._actor, self._name, self._experiment, oldest.env_steps,
            )  # fmt: skip
            self._settle(oldest.sequence)

    def _too_late(self, deadline: Deadline, what: str) -> DeadlineExceeded:
        return DeadlineExceeded(
            f"edge {self._name} of {self._experiment}: {self._actor} waited {deadline.waited_s():.1f} s for the learner "
            f"to {what}; the learner is gone, paused, or slower than its actors"
        )

    # -- Redis

    def _new_writer(self) -> int:
        def operation(client: Any) -> int:
            return int(client.incr(keys.writers()))

        return self._store.run("hand out a writer id", operation)

    def _add(self, message: bytes) -> bytes:
        head = b"%b$%d\r\n" % (self._command, len(message))

        def operation(connection: RawConnection) -> bytes:
            connection.send(head, message, b"\r\n")
            replies = connection.replies(1)
            raise_first_error(replies)
            return bytes(replies[0])

        return self._link.attempt(f"take a message of edge {self._name}", operation)

    def _exists(self, entry_id: bytes) -> bool:
        def operation(client: Any) -> bool:
            return bool(client.xrange(self._key, min=entry_id, max=entry_id, count=1))

        return self._store.run(f"look for a message of edge {self._name}", operation)
