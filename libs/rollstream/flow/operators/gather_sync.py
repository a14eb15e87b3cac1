"""gather_sync: the barrier. One item per round, joined of one message of every actor, all acted by the same weights.

round 1: [a b c] ─▶ joined ─▶ update, publish ─▶ end of the branch: ack a b c ─▶ round 2: [a b c] ...
"""

from __future__ import annotations

from collections.abc import Iterator

from rollstream.clock import Deadline
from rollstream.flow.fault import broken
from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.inbox import Inbox
from rollstream.flow.operators.operator import Operator
from rollstream.spaces import Batch

__all__ = ["GatherSync"]

MOST_STALE = 50
"""Stale messages of each actor in one round, after which it is plain that no round will ever be of one version."""


class GatherSync(Operator):
    """Rounds: one message of every actor that is alive at the round's start, all by one version, the newest there is."""

    def prepare(self) -> None:
        self.inbox = Inbox(self.node, self.running, self.meter)
        deadline_s = self.node.settings.get("deadline_s")
        self.deadline_s = None if deadline_s is None else float(deadline_s)

    def parcels(self) -> Iterator[Parcel]:
        while messages := self._round():
            yield self.passed(self.inbox.admit(messages))

    def ready(self) -> bool:
        return self.inbox.ready()

    def _round(self) -> list[Batch]:
        """The messages of one round in the order of the actors' names; none when the flow stops."""
        version = self.running.side.version()
        expected = self.inbox.live_actors()
        gathered: dict[str, Batch] = {}
        deadline: Deadline | None = None
        stale = 0
        while not gathered or self.inbox.missing(gathered, expected):
            message = self.inbox.receive(gathered, expected, deadline)
            if message is None:
                if self.running.stopping():
                    return []
                if gathered and deadline is not None and deadline.passed():
                    self.running.side.counters.add("rounds_cut_short")
                    break
                continue
            if message.version < version:
                self.inbox.refuse(message, reason="stale")
                stale += 1
            elif message.version > version:
                for older in gathered.values():  # weights were published meanwhile, and a round is of one version
                    self.inbox.refuse(older, reason="stale")
                stale += len(gathered)
                version, gathered = message.version, {message.actor: message}
            else:
                if message.actor in gathered:  # it sends again, so it never saw the acknowledgement: the newer one counts
                    self.inbox.refuse(gathered[message.actor], reason="repeated")
                gathered[message.actor] = message
            self._require_progress(stale, expected)
            self.meter.depth_items = len(gathered)
            if gathered and deadline is None and self.deadline_s is not None:
                deadline = Deadline(self.running.side.clock, after_s=self.deadline_s)
        self.meter.depth_items = 0
        return [gathered[actor] for actor in sorted(gathered)]

    def _require_progress(self, stale: int, expected: set[str]) -> None:
        if stale >= MOST_STALE * max(1, len(expected)):
            raise broken(
                self.node,
                f"got {stale} messages by older weights in one round: weights are published faster than a round of one version "
                "can be gathered. Publish behind the gather, in its branch, or use gather_async()",
            )
