"""prefetch: a thread that pulls ahead, as far as its queue is long."""

from __future__ import annotations

from collections.abc import Iterator

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator
from rollstream.flow.pump import Pump

__all__ = ["Prefetch"]


class Prefetch(Operator):
    """Items that were pulled ahead. In inline mode they are pulled when asked for."""

    def prepare(self) -> None:
        self.meter.bound_items = int(self.node.settings["items"] or 1)
        self.queue = self.running.make_queue(self.meter.bound_items)
        self.pump = Pump(
            self.node.name,
            self.inputs[0].parcels,
            running=self.running,
            deliver=self._put,
            end=self.queue.end,
        )

    def parcels(self) -> Iterator[Parcel]:
        if self.running.inline:
            yield from (self.passed(parcel) for parcel in self.inputs[0].parcels())
            return
        self.pump.start()
        what = f"items of {self.inputs[0].node.name}"
        while (parcel := self.running.take(self.queue, self.node, self.meter, what)) is not None:
            yield self.passed(parcel)
        self.running.stopping()  # raises what the thread failed with

    def wake(self) -> None:
        self.queue.close()

    def abandon(self) -> None:
        self.queue.close()
        self.inputs[0].abandon()

    def close(self) -> None:
        self.pump.join()

    def _put(self, parcel: Parcel) -> bool:
        return self.running.put(self.queue, parcel, self.meter)
