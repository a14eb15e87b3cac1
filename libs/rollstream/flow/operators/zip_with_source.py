"""zip_with_source: pairs of the actor that an item comes from and the item."""

from __future__ import annotations

from collections.abc import Iterator

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator

__all__ = ["ZipWithSource"]


class ZipWithSource(Operator):
    """Stands right behind an asynchronous gather, whose items are messages of one actor each."""

    def parcels(self) -> Iterator[Parcel]:
        for parcel in self.inputs[0].parcels():
            parcel.item = (parcel.item.actor, parcel.item)
            yield self.passed(parcel)
