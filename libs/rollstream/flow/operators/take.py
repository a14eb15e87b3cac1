"""take: the first items, then the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator

__all__ = ["Take"]


class Take(Operator):
    """The first items, then the end."""

    def prepare(self) -> None:
        self.items = int(self.node.settings["items"] or 0)
        self.taken = 0

    def parcels(self) -> Iterator[Parcel]:
        source = self.inputs[0].parcels()
        while self.taken < self.items and (parcel := next(source, None)) is not None:
            self.taken += 1
            yield self.passed(parcel)
        self.inputs[0].abandon()

    def ready(self) -> bool:
        return self.taken >= self.items or self.inputs[0].ready()

    def state(self) -> dict[str, Any]:
        return {"taken": self.taken}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.taken = int(state["taken"])
