"""window: tuples of consecutive items. What it holds is part of the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.held import Held
from rollstream.flow.operators.operator import Operator

__all__ = ["Window"]


class Window(Operator):
    """Tuples of consecutive items."""

    def prepare(self) -> None:
        self.held = Held(self)
        self.meter.bound_items = self.items = int(self.node.settings["items"] or 1)

    def parcels(self) -> Iterator[Parcel]:
        for parcel in self.inputs[0].parcels():
            self.held.add(parcel)
            if len(self.held) < self.items:
                self.held.keep(parcel)
            else:
                yield self.passed(self.held.leave_as(tuple(self.held.items)))
        if self.held and not self.running.stopping():
            yield self.passed(self.held.leave_as(tuple(self.held.items)))

    def state(self) -> dict[str, Any]:
        return self.held.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.held.restore(state)

    def held_env_steps(self) -> int:
        return self.held.unsettled_env_steps
