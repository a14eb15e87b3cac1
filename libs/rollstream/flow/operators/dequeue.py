"""dequeue: the items of a bounded queue, in the branch that uses them."""

from __future__ import annotations

from collections.abc import Iterator

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator

__all__ = ["Dequeue"]


class Dequeue(Operator):
    """Takes what another branch has put in, until that has ended and the queue is empty."""

    def prepare(self) -> None:
        self.channel = self.running.channel(self.node)
        self.meter.bound_items = self.channel.bound_items

    def parcels(self) -> Iterator[Parcel]:
        while (parcel := self.channel.get(self.node, self.meter)) is not None:
            yield self.passed(parcel)
        self.running.stopping()  # raises what the other branch failed with

    def ready(self) -> bool:
        return self.channel.has_items()

    def abandon(self) -> None:
        self.channel.reader_ended()

    def wake(self) -> None:
        self.channel.close()
