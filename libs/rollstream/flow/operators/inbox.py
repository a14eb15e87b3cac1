"""The learner's end of an edge, with the books that are kept when a message enters the flow or is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from rollstream.errors import SchemaMismatch
from rollstream.flow.batches import join_batches
from rollstream.flow.description import gather_edge
from rollstream.flow.fault import raise_at_operator
from rollstream.flow.fragment import DROPPED_METRIC
from rollstream.flow.ledger import Parcel
from rollstream.flow.meter import Meter
from rollstream.flow.node import Node
from rollstream.flow.running import SLICE_S, Running
from rollstream.spaces import Batch

__all__ = ["Inbox"]


class Inbox:
    """Receives messages of the edge that ends in the gather `node`."""

    def __init__(self, node: Node, running: Running, meter: Meter) -> None:
        self._node = node
        self._running = running
        self._meter = meter
        self._edge = gather_edge(node)
        self._source = running.side.messages(self._edge.name, in_flight=self._edge.in_flight)

    def ready(self) -> bool:
        """Whether `receive` would not have to wait."""
        return self._source.ready()

    def missing(self, gathered: Mapping[str, Batch]) -> set[str]:
        """Live actors whose message is not among `gathered`."""
        return self._source.live_actors() - gathered.keys()

    def receive(self, gathered: Mapping[str, Batch]) -> Batch | None:
        """The next message; None when the flow stops, or when nobody alive is left to complete the round `gathered`."""
        with self._running.waits(self._node, self._meter, f"messages on edge {self._edge.name}") as waiting:
            while not self._running.stopping():
                waiting.look_up()
                message = self._next()
                if message is not None:
                    return message
                missing = self.missing(gathered)
                if gathered and not missing:
                    return None
                self._meter.waits_for = f"messages on edge {self._edge.name} of {', '.join(sorted(missing)) or 'any actor'}"
        return None

    def admit(self, messages: Sequence[Batch]) -> Parcel:
        """One item of one or more messages, which are acknowledged when it has been used."""
        try:
            joined = join_batches([_without_told(message) for message in messages])
        except SchemaMismatch as error:
            raise_at_operator(error, self._node)
        for message in messages:
            self._note(message)
        return self._running.ledger.admit(
            joined,
            env_steps=joined.env_steps,
            stored=self._edge.stored,
            acknowledge=partial(self._source.ack, *messages),
        )

    def refuse(self, message: Batch, *, reason: str) -> None:
        """Drop a message, count it, let its actor go on. Rows that lie in a table already still count as stored."""
        if self._edge.stored:
            self._running.ledger.finish(self.admit([message]))
        else:
            self._note(message)
            self._running.ledger.count_dropped(message.env_steps, reason=reason)
            self._source.ack(message)

    def _next(self) -> Batch | None:
        try:
            return self._source.next(SLICE_S)
        except Exception as error:
            raise_at_operator(error, self._node)

    def _note(self, message: Batch) -> None:
        """Take up what a message tells beside its rows: episodes, and environment steps that its actor dropped.

        Not when it is received: one of a round that is never complete comes again after a restart.
        """
        self._running.tally.episodes_ended(message.episodes)
        self._running.side.counters.add("episodes", len(message.episodes))
        for name, env_steps in message.metrics.items():
            if name.startswith(DROPPED_METRIC):
                self._running.ledger.count_dropped(int(env_steps), reason=name.removeprefix(DROPPED_METRIC))


def _without_told(message: Batch) -> Batch:
    """`message` without the metrics that `_note` has taken up."""
    kept = {name: value for name, value in message.metrics.items() if not name.startswith(DROPPED_METRIC)}
    return message if len(kept) == len(message.metrics) else replace(message, metrics=kept)
