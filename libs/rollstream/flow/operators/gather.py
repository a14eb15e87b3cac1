"""gather_sync and gather_async: messages of the actors become items of the learner.

gather_sync    round 1: [a b c] ─▶ joined ─▶ update, publish ─▶ end of the branch: ack a b c ─▶ round 2: [a b c] ...
gather_async   a ─▶ ... ─▶ end: ack a    b ─▶ ...    a ─▶ ...        in order of arrival
"""

from __future__ import annotations

from collections.abc import Iterator

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.inbox import Inbox
from rollstream.flow.operators.operator import Operator
from rollstream.spaces import Batch

__all__ = ["GatherAsync", "GatherSync"]


class GatherAsync(Operator):
    """Messages one by one, in order of arrival."""

    def prepare(self) -> None:
        self.inbox = Inbox(self.node, self.running, self.meter)

    def parcels(self) -> Iterator[Parcel]:
        while (message := self.inbox.receive({})) is not None:
            yield self.passed(self.inbox.admit([message]))

    def ready(self) -> bool:
        return self.inbox.ready()


class GatherSync(Operator):
    """Rounds: one message of every live actor, none by weights older than the newest version at the start of the round."""

    def prepare(self) -> None:
        self.inbox = Inbox(self.node, self.running, self.meter)

    def parcels(self) -> Iterator[Parcel]:
        while messages := self._round():
            yield self.passed(self.inbox.admit(messages))

    def ready(self) -> bool:
        return self.inbox.ready()

    def _round(self) -> list[Batch]:
        """The messages of one round in the order of the actors' names; none when the flow stops."""
        demanded_version = self.running.side.version()
        gathered: dict[str, Batch] = {}
        while not gathered or self.inbox.missing(gathered):
            message = self.inbox.receive(gathered)
            if message is None:
                if self.running.stopping():
                    return []
                continue
            if message.version < demanded_version:
                self.inbox.refuse(message, reason="stale")
                continue
            if message.actor in gathered:  # it sends again, so it never saw the acknowledgement: the newer one counts
                self.inbox.refuse(gathered[message.actor], reason="repeated")
            gathered[message.actor] = message
            self.meter.depth_items = len(gathered)
        self.meter.depth_items = 0
        return [gathered[actor] for actor in sorted(gathered)]
