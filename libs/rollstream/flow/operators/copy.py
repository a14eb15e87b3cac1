"""copy: one user's end of a duplicate."""

from __future__ import annotations

from collections.abc import Iterator

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.duplicate import Duplicate
from rollstream.flow.operators.operator import Operator

__all__ = ["Copy"]


class Copy(Operator):
    """One user's copy."""

    def prepare(self) -> None:
        (shared,) = self.inputs
        assert isinstance(shared, Duplicate)
        self.shared = shared
        self.index = int(self.node.settings["index"] or 0)

    def parcels(self) -> Iterator[Parcel]:
        while (parcel := self.shared.pull(self.index)) is not None:
            yield self.passed(parcel)
        self.running.stopping()

    def ready(self) -> bool:
        return self.shared.can_pull(self.index)

    def abandon(self) -> None:
        self.shared.leave(self.index)
