"""The learner's end of an edge, with the books that are kept when a message enters the flow or is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rollstream.clock import Deadline
from rollstream.errors import SchemaMismatch
from rollstream.flow.batches import join_batches
from rollstream.flow.description import gather_edge
from rollstream.flow.fault import raise_at_operator
from rollstream.flow.fragment import AGENT_STEPS_METRIC, DROPPED_METRIC
from rollstream.flow.ledger import Parcel
from rollstream.flow.meter import Meter
from rollstream.flow.node import Node
from rollstream.flow.running import SLICE_S, Running
from rollstream.spaces import Batch

__all__ = ["Inbox"]

NOTHING: Mapping[str, Batch] = {}
NOBODY: set[str] = set()


class Inbox:
    """Receives messages of the edge that ends in the gather `node`."""

    def __init__(self, node: Node, running: Running, meter: Meter) -> None:
        self._node = node
        self._running = running
        self._meter = meter
        self._edge = gather_edge(node)
        self._stored = self._edge.stored
        self._what = f"messages on edge {self._edge.name}"
        self._source = running.side.messages(self._edge.name, in_flight=self._edge.in_flight)
        self._ack, self._at_hand = self._source.ack, self._source.at_hand
        self._admit = running.ledger.admit
        self._wait = running.waits(node, meter, self._what)

    def ready(self) -> bool:
        """Whether `receive` would not have to wait."""
        return self._source.ready()

    def live_actors(self) -> set[str]:
        """Actors that are alive now and produce for this edge."""
        return set(self._source.live_actors())

    def missing(self, gathered: Mapping[str, Batch], expected: set[str]) -> set[str]:
        """Those of the `expected` that still live, and whose message is not among `gathered`."""
        if expected <= gathered.keys():
            return NOBODY
        return (expected & self._source.live_actors()) - gathered.keys()

    def receive(
        self, gathered: Mapping[str, Batch] = NOTHING, expected: set[str] = NOBODY, deadline: Deadline | None = None
    ) -> Batch | None:
        """The next message. None when the flow stops; of a round (`gathered`) also when nobody `expected` is left to complete it,
        or when `deadline` has passed."""
        stopping = self._running.stopping
        if stopping():
            return None
        try:
            message = self._at_hand()
        except Exception as error:
            raise_at_operator(error, self._node)
        if message is not None:
            return message
        with self._wait as waiting:
            while not stopping():
                waiting.look_up()
                try:
                    message = self._source.next(SLICE_S if deadline is None else min(SLICE_S, deadline.remaining_s()))
                except Exception as error:
                    raise_at_operator(error, self._node)
                if message is not None:
                    return message
                missing = self.missing(gathered, expected) if expected else self.live_actors()
                if gathered and (not missing or (deadline is not None and deadline.passed())):
                    return None
                self._meter.waits_for = f"{self._what} of {', '.join(sorted(missing)) or 'any actor'}"
        return None

    def admit_one(self, message: Batch) -> Parcel:
        """An item of this message alone; most tell nothing beside their rows."""
        if message.metrics or len(message.episodes.returns):
            return self.admit((message,))
        return self._admit(message, self._stored, self._ack, (message,))

    def admit(self, messages: Sequence[Batch]) -> Parcel:
        """One item of one or more messages, which are acknowledged when it has been used."""
        try:
            joined = join_batches(messages)
        except SchemaMismatch as error:
            raise_at_operator(error, self._node)
        for message in messages:
            if message.metrics or len(message.episodes.returns):
                self._note(message)
        if joined.metrics:
            joined = _without_told(joined)
        return self._admit(joined, self._stored, self._ack, messages)

    def refuse(self, message: Batch, *, reason: str) -> None:
        """Drop a message, count it, let its actor go on. Rows that lie in a table already still count as stored."""
        if self._stored:
            self._running.ledger.finish(self.admit([message]))
        else:
            self._note(message)
            self._running.ledger.count_dropped(message.env_steps, reason=reason)
            self._source.ack(message)

    def _note(self, message: Batch) -> None:
        """Take up what a message tells beside its rows: episodes, and environment steps that its actor dropped.

        Not when it is received: one of a round that is never complete comes again after a restart.
        """
        running = self._running
        agent_steps = {
            name.removeprefix(AGENT_STEPS_METRIC): int(steps)
            for name, steps in message.metrics.items()
            if name.startswith(AGENT_STEPS_METRIC)
        }
        running.tally.episodes_ended(message.episodes, policy=next(iter(agent_steps), ""))
        running.side.counters.add("episodes", len(message.episodes))
        for policy, steps in agent_steps.items():
            running.side.counters.add("agent_steps", steps, reason=policy)
        for name, env_steps in message.metrics.items():
            if name.startswith(DROPPED_METRIC):
                running.ledger.count_dropped(int(env_steps), reason=name.removeprefix(DROPPED_METRIC))


def _without_told(message: Batch) -> Batch:
    """`message` without the metrics that `_note` has taken up."""
    kept = {name: value for name, value in message.metrics.items() if not name.startswith((DROPPED_METRIC, AGENT_STEPS_METRIC))}
    return message if len(kept) == len(message.metrics) else replace(message, metrics=kept)
