"""What an operator holds back until there is enough of it; part of the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollstream.flow.batches import item_from_state, item_to_state
from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator

__all__ = ["Held"]


class Held:
    """Parcels that an operator holds back; their messages are acknowledged, so nothing else remembers them."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._parcels: list[Parcel] = []

    def __len__(self) -> int:
        return len(self._parcels)

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
