"""filter: the items for which a step is true."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.bound_step import BoundStep
from rollstream.flow.operators.operator import Operator

__all__ = ["Filter"]


class Filter(Operator):
    """Keeps the items for which its step is true; the others are dropped and counted."""

    def prepare(self) -> None:
        self.step = BoundStep(self.node, self.running, self.meter)

    def parcels(self) -> Iterator[Parcel]:
        reason = self.step.step.drops_as or self.node.name
        for parcel in self.inputs[0].parcels():
            if self.step(parcel.item):
                yield self.passed(parcel)
            else:
                self.running.ledger.drop(parcel, reason=reason)

    def state(self) -> dict[str, Any]:
        return self.step.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.step.restore(state)

    def close(self) -> None:
        self.step.close()
