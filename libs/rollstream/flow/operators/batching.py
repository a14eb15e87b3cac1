"""batch: batches joined until there are enough environment steps. What it holds is part of the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollstream.errors import SchemaMismatch
from rollstream.flow.batches import join_batches
from rollstream.flow.fault import broken, raise_at_operator
from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.held import Held
from rollstream.flow.operators.operator import Operator
from rollstream.spaces import Batch

__all__ = ["Batching"]


class Batching(Operator):
    """Batches joined until they have enough environment steps."""

    def prepare(self) -> None:
        self.held = Held(self)
        self.steps = int(self.node.settings["steps"] or 1)

    def parcels(self) -> Iterator[Parcel]:
        held_steps = sum(item.env_steps for item in self.held.items)
        for parcel in self.inputs[0].parcels():
            item = parcel.item
            if not isinstance(item, Batch):
                raise broken(
                    self.node,
                    f"joins batches, got a {type(item).__name__}; convert it before, or use window(items=...)",
                )
            self.held.add(parcel)
            held_steps += item.env_steps
            if held_steps < self.steps:
                self.held.keep(parcel)
            else:
                held_steps = 0
                yield self._joined()
        if self.held and not self.running.stopping():
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
