"""enqueue: items into a bounded queue, for another branch; a full queue holds this one back."""

from __future__ import annotations

from collections.abc import Iterator

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator

__all__ = ["Enqueue"]


class Enqueue(Operator):
    """What a parcel accounts for goes through the queue; the item itself also passes here."""

    def prepare(self) -> None:
        self.channel = self.running.channel(self.node)
        self.channel.add_writer()
        self.meter.bound_items = self.channel.bound_items
        self.ended = False

    def parcels(self) -> Iterator[Parcel]:
        for parcel in self.inputs[0].parcels():
            item = parcel.item
            if not self.channel.put(parcel, self.node, self.meter):
                if not self.running.stopping():  # nobody drains the queue any more
                    self.running.ledger.finish(parcel)
                    self.inputs[0].abandon()
                return
            yield self.passed(Parcel(item))
        self._end()

    def ready(self) -> bool:
        return self.channel.has_room() and self.inputs[0].ready()

    def abandon(self) -> None:
        self._end()
        self.inputs[0].abandon()

    def wake(self) -> None:
        self.channel.close()

    def _end(self) -> None:
        if not self.ended:
            self.ended = True
            self.channel.writer_ended()
