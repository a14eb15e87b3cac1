"""batch and window: operators that hold items back until there are enough. What they hold is part of the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollstream.errors import SchemaMismatch
from rollstream.flow.batches import item_from_state, item_to_state, join_batches
from rollstream.flow.fault import broken, raise_at_operator
from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator
from rollstream.spaces import Batch

__all__ = ["Batching", "Window"]


class Held:
    """Parcels that an operator holds back; their messages are acknowledged, so nothing else remembers them."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._parcels: list[Parcel] = []

    @property
    def items(self) -> list[Any]:
        return [parcel.item for parcel in self._parcels]

    @property
    def unsettled_env_steps(self) -> int:
        return sum(parcel.env_steps for parcel in self._parcels)

    def add(self, parcel: Parcel) -> None:
        """Take a parcel in. Its messages stay unacknowledged until `keep`."""
        self._parcels.append(parcel)
        self._operator.meter.depth_items = len(self._parcels)

    def keep(self, parcel: Parcel) -> None:
        """It stays for a while: acknowledge its messages."""
        self._operator.running.ledger.absorb(parcel)

    def leave_as(self, item: Any) -> Parcel:
        """All parcels leave as one with `item`. Messages of the last are acknowledged when it has been used."""
        parcels, self._parcels = self._parcels, []
        self._operator.meter.depth_items = 0
        return self._operator.running.ledger.merge(item, parcels)

    def state(self) -> dict[str, Any]:
        holder = self._operator.node.name
        return {
            "held": [
                {"item": item_to_state(parcel.item, holder=holder), "env_steps": parcel.env_steps} for parcel in self._parcels
            ]
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._parcels = [Parcel(item_from_state(entry["item"]), int(entry["env_steps"])) for entry in state["held"]]
        self._operator.meter.depth_items = len(self._parcels)


class Window(Operator):
    """Tuples of consecutive items."""

    def prepare(self) -> None:
        self.held = Held(self)
        self.meter.bound_items = self.items = int(self.node.settings["items"] or 1)

    def parcels(self) -> Iterator[Parcel]:
        for parcel in self.inputs[0].parcels():
            self.held.add(parcel)
            if len(self.held.items) < self.items:
                self.held.keep(parcel)
            else:
                yield self.passed(self.held.leave_as(tuple(self.held.items)))
        if self.held.items and not self.running.stopping():
            yield self.passed(self.held.leave_as(tuple(self.held.items)))

    def state(self) -> dict[str, Any]:
        return self.held.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.held.restore(state)

    def held_env_steps(self) -> int:
        return self.held.unsettled_env_steps


class Batching(Operator):
    """Batches joined until they have enough environment steps."""

    def prepare(self) -> None:
        self.held = Held(self)
        self.steps = int(self.node.settings["steps"] or 1)

    def parcels(self) -> Iterator[Parcel]:
        for parcel in self.inputs[0].parcels():
            if not isinstance(parcel.item, Batch):
                raise broken(
                    self.node,
                    f"joins batches, got a {type(parcel.item).__name__}; convert it before, or use window(items=...)",
                )
            self.held.add(parcel)
            if sum(item.env_steps for item in self.held.items) < self.steps:
                self.held.keep(parcel)
            else:
                yield self._joined()
        if self.held.items and not self.running.stopping():
            yield self._joined()

    def state(self) -> dict[str, Any]:
        return self.held.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.held.restore(state)

    def held_env_steps(self) -> int:
        return self.held.unsettled_env_steps

    def _joined(self) -> Parcel:
        try:
            joined = join_batches(self.held.items)
        except SchemaMismatch as error:
            raise_at_operator(error, self.node)
        return self.passed(self.held.leave_as(joined))
