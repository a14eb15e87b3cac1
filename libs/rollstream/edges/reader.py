"""The learner's end of an edge: takes messages in order of arrival and acknowledges them after use.

    XREADGROUP ─▶ decode ─▶ NEW ─▶ next() ─▶ used ─▶ ack: XACK + XDEL + credit, one transaction
                   │         └ REPEATED: deleted, counted
                   └ cannot be decoded: dead letters, counted

One reader at a time has an edge (it runs under the experiment's lease). What a reader took and never acknowledged stays pending
in Redis; the next one claims it first (`XAUTOCLAIM`). When Redis lost the stream, the group is made again and life goes on.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rollstream.clock import Deadline
from rollstream.edges.ledger import Arrival, Ledger
from rollstream.edges.message import EdgeMessage, Prologue, decode_batch, read_prologue
from rollstream.errors import SchemaMismatch, StoreError
from rollstream.metrics import Counters
from rollstream.store import Credit, Store, keys, reply_code

__all__ = ["READ_MESSAGES", "EdgeReader"]

_LOG = logging.getLogger("rollstream.edges")
READ_MESSAGES = 8
"""Most messages that one question to Redis brings."""
_GROUP = "learner"
_MESSAGE = b"m"
_SLICE_S = 1.0
_RECLAIM_EVERY_S = 60.0
_DEAD_LETTERS_KEPT = 100
_DEAD_LETTER_BYTES = 4_096
_START = b"0-0"


class EdgeReader:
    """Reads one edge. `next` is for one thread, `ack` may be called from another.

    Args:
        experiment, name: which edge.
        consumer: member id of the learner.
        spec_hash: refuse messages whose columns have another hash; None takes all.
        counters: take `edge_messages_read`, `edge_messages_repeated` and `edge_messages_refused{reason}`.
    """

    def __init__(
        self,
        store: Store,
        *,
        experiment: str,
        name: str,
        consumer: str,
        spec_hash: str | None = None,
        counters: Counters | None = None,
    ) -> None:
        self._store = store
        self._experiment = experiment
        self._name = name
        self._consumer = consumer
        self._spec_hash = spec_hash
        self._counters = counters or Counters()
        self._key = keys.edge(experiment, name)
        self._credit = Credit(
            store,
            credit_key=keys.edge_credit(experiment, name),
            wake_key=lambda writer: keys.edge_wake(experiment, name, writer),
        )
        self._ledger = Ledger()
        self._lock = threading.Lock()
        self._read: deque[tuple[bytes, dict[bytes, bytes]]] = deque()
        self._claim_from: bytes | None = _START
        self._claim_idle_ms = 0
        self._claimed_at_s = store.clock.monotonic_s()
        self._made = False

    # -- reading

    def next(self, *, timeout_s: float) -> EdgeMessage | None:
        """The next message, waiting up to `timeout_s` for one; None when none came. It stays in use until `ack`."""
        deadline = Deadline(self._store.clock, after_s=timeout_s)
        while True:
            if (message := self.at_hand()) is not None:
                return message
            if not self._made:
                self._make_group()
            if self._claim_from is not None:
                self._claim()
            elif not self._receive(min(_SLICE_S, deadline.remaining_s())) and deadline.passed():
                return None

    def at_hand(self) -> EdgeMessage | None:
        """The next of the messages that came with an earlier one; None when that takes a question to Redis."""
        while self._read:
            message = self._examine(*self._read.popleft())
            if message is not None:
                return message
        return None

    def _receive(self, block_s: float) -> bool:
        attempts = 0

        def operation(client: Any) -> Any:
            nonlocal attempts
            attempts += 1
            return client.xreadgroup(
                _GROUP, self._consumer, {self._key: ">"}, count=READ_MESSAGES, block=max(1, int(1_000 * block_s))
            )

        reply = self._in_group(f"read edge {self._name}", operation)
        if attempts > 1:  # what was on its way when the connection broke is pending now
            self._claim_again(idle_ms=0)
        if reply:
            self._read.extend(reply[0][1])
        elif self._store.clock.monotonic_s() - self._claimed_at_s >= _RECLAIM_EVERY_S:
            self._claim_again(idle_ms=int(1_000 * _RECLAIM_EVERY_S))
        return bool(reply)

    def _claim_again(self, *, idle_ms: int) -> None:
        self._claim_from = _START
        self._claim_idle_ms = idle_ms

    def _claim(self) -> None:
        """Take over one message that some reader (a dead one, or this one before a broken connection) left pending."""

        def operation(client: Any) -> Any:
            return client.xautoclaim(
                self._key, _GROUP, self._consumer, min_idle_time=self._claim_idle_ms, start_id=self._claim_from, count=1
            )

        reply = self._in_group(f"claim messages of edge {self._name}", operation)
        if reply is None:
            return
        following, entries, *dead = reply
        self._read.extend(entry for entry in entries if entry[1])
        if dead and dead[0]:
            _LOG.warning(
                "edge %s of %s: %d pending messages no longer exist and were dropped", self._name, self._experiment, len(dead[0])
            )
        self._claim_from = None if following == _START else following
        if self._claim_from is None:
            self._claimed_at_s = self._store.clock.monotonic_s()

    def _examine(self, entry_id: bytes, fields: dict[bytes, bytes]) -> EdgeMessage | None:
        """The message to hand out; None when it is damaged, repeated or in use, and has been dealt with."""
        buffer = fields.get(_MESSAGE, b"")
        try:
            message = decode_batch(buffer)
            self._require_columns(message)
        except SchemaMismatch as error:
            self._refuse(entry_id, buffer, error)
            return None
        with self._lock:
            self._meet(message.writer, message.sequence)
            arrival = self._ledger.arrived(
                entry_id,
                message.writer,
                message.sequence,
                actor=message.batch.actor,
                now_s=self._store.clock.monotonic_s(),
            )
        if arrival in (Arrival.COPY, Arrival.REPEATED):
            self._counters.add("edge_messages_repeated")
        if arrival is Arrival.REPEATED:
            self._settle(f"drop a repeated message of edge {self._name}", [entry_id], {})
        if arrival is not Arrival.NEW:
            return None
        self._counters.add("edge_messages_read")
        return replace(message, entry_id=entry_id)

    def _require_columns(self, message: EdgeMessage) -> None:
        if self._spec_hash is not None and message.spec_hash != self._spec_hash:
            raise SchemaMismatch(
                f"edge {self._name}: {message.batch.actor} sends columns with hash {message.spec_hash or 'none'}, "
                f"the learner expects {self._spec_hash}; both must run the same spec"
            )

    def _meet(self, writer: int, sequence: int) -> None:
        if not self._ledger.knows(writer):
            self._ledger.meet(writer, acknowledged=self._credit.acknowledged(writer), first=sequence)

    def _refuse(self, entry_id: bytes, buffer: bytes, error: SchemaMismatch) -> None:
        """Move what cannot be used to the dead letters; its writer, if it can be told, need not wait for it."""
        prologue = read_prologue(buffer)
        reason = _reason(buffer, prologue)
        if self._counters.value("edge_messages_refused", reason=reason) == 0:
            _LOG.warning("edge %s of %s: message moved to the dead letters: %s", self._name, self._experiment, error)
        self._counters.add("edge_messages_refused", reason=reason)
        credit = {}
        if prologue is not None:
            with self._lock:
                self._meet(prologue.writer, prologue.sequence)
                self._ledger.skipped(prologue.writer, prologue.sequence)
                credit[prologue.writer] = self._ledger.settled_up_to(prologue.writer)
        letter = {
            "reason": reason,
            "error": str(error),
            "entry": entry_id,
            "bytes": len(buffer),
            "begin": bytes(buffer[:_DEAD_LETTER_BYTES]),
        }
        self._settle(f"move a message of edge {self._name} to the dead letters", [entry_id], credit, letter=letter)

    # -- acknowledging

    def ack(self, messages: Sequence[EdgeMessage]) -> None:
        """Say that the messages have been used (trained on, or dropped and counted). Safe to repeat."""
        if not messages:
            return
        used: dict[int, set[int]] = {}
        for message in messages:
            used.setdefault(message.writer, set()).add(message.sequence)
        with self._lock:
            credit = {writer: self._ledger.settled_up_to(writer, besides=sequences) for writer, sequences in used.items()}
            entries = {message.entry_id for message in messages}
            entries.update(entry for message in messages for entry in self._ledger.entries(message.writer, message.sequence))
        self._settle(f"acknowledge messages of edge {self._name}", entries, credit)
        with self._lock:
            for message in messages:
                self._ledger.settle(message.writer, message.sequence)

    def _settle(
        self, what: str, entry_ids: Iterable[bytes], credit: dict[int, int | None], *, letter: dict[str, Any] | None = None
    ) -> None:
        ids = list(entry_ids)

        def operation(client: Any) -> None:
            with client.pipeline(transaction=True) as pipeline:
                if letter is not None:
                    pipeline.xadd(
                        keys.edge_dead_letters(self._experiment, self._name), letter, maxlen=_DEAD_LETTERS_KEPT, approximate=False
                    )
                pipeline.xack(self._key, _GROUP, *ids)
                pipeline.xdel(self._key, *ids)
                for writer, sequence in credit.items():
                    if sequence is not None:
                        self._credit.grant(pipeline, writer, sequence)
                pipeline.execute()

        self._store.run(what, operation)

    # -- who is there

    def live(self) -> frozenset[int]:
        """Writers that were heard of and not dropped."""
        return frozenset(self.actors())

    def actors(self) -> dict[int, str]:
        """Actor of each live writer."""
        with self._lock:
            return self._ledger.live()

    def silence_s(self) -> dict[str, float]:
        """Seconds since the last message of each live actor: who to look at when nothing comes."""
        now_s = self._store.clock.monotonic_s()
        with self._lock:
            return {actor: now_s - heard_s for actor, heard_s in self._ledger.heard_s().items()}

    def drop_writer(self, writer: int) -> None:
        """Forget a writer whose process is gone. Its messages that already came can still be used and acknowledged."""
        with self._lock:
            self._ledger.drop(writer)
        self._credit.forget(writer)

    @property
    def held(self) -> int:
        """Messages handed out and not acknowledged."""
        with self._lock:
            return self._ledger.held

    @property
    def missing(self) -> int:
        """Messages whose number was skipped: lost in Redis, or still to come from a reader that died."""
        with self._lock:
            return self._ledger.missing()

    def depth(self) -> int:
        """Messages in the stream: unread, or in use."""

        def operation(client: Any) -> int:
            return int(client.xlen(self._key))

        return self._store.run(f"count the messages of edge {self._name}", operation)

    # -- the group

    def _make_group(self) -> None:
        def operation(client: Any) -> None:
            client.xgroup_create(self._key, _GROUP, id="0", mkstream=True)

        try:
            self._store.run(f"make the group of edge {self._name}", operation)
        except StoreError as error:
            if reply_code(error) != "BUSYGROUP":
                raise
        self._made = True

    def _in_group(self, what: str, operation: Any) -> Any:
        """The reply; None when the group is gone (a flushed server, a failover to an empty replica): it is made again."""
        try:
            return self._store.run(what, operation)
        except StoreError as error:
            if reply_code(error) != "NOGROUP":
                raise
            _LOG.warning("edge %s of %s vanished from Redis; made again, unread messages are lost", self._name, self._experiment)
            self._counters.add("edge_groups_made_again")
            self._made = False
            return None


def _reason(buffer: bytes, prologue: Prologue | None) -> str:
    if prologue is None:
        return "garbage"
    if not prologue.readable:
        return "schema"
    try:
        decode_batch(buffer)
    except SchemaMismatch:
        return "damaged"
    return "columns"
