"""gather_async: messages of the actors become items of the learner, in order of arrival.

a ─▶ ... ─▶ end: ack a    b ─▶ ...    a ─▶ ...        each actor at most `in_flight` unused messages ahead
"""

from __future__ import annotations

from collections.abc import Iterator

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.inbox import Inbox
from rollstream.flow.operators.operator import Operator

__all__ = ["GatherAsync"]


class GatherAsync(Operator):
    """Messages one by one, in order of arrival."""

    def prepare(self) -> None:
        self.inbox = Inbox(self.node, self.running, self.meter)

    def parcels(self) -> Iterator[Parcel]:
        receive, admit, passed = self.inbox.receive, self.inbox.admit_one, self.passed
        while (message := receive()) is not None:
            yield passed(admit(message))

    def ready(self) -> bool:
        return self.inbox.ready()
