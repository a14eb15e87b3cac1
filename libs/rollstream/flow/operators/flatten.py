"""flatten: the members of every item, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rollstream.flow.fault import broken, raise_at_operator
from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator
from rollstream.spaces import Batch

__all__ = ["Flatten"]


class Flatten(Operator):
    """One item becomes several; an item without members is dropped and counted."""

    def parcels(self) -> Iterator[Parcel]:
        for parcel in self.inputs[0].parcels():
            members = self._members(parcel.item)
            if not members:
                self.running.ledger.drop(parcel, reason=self.node.name)
                continue
            for part in self.running.ledger.split(parcel, members, self._shares(members, parcel.env_steps)):
                yield self.passed(part)

    def _members(self, item: Any) -> Sequence[Any]:
        try:
            return tuple(item)
        except Exception as error:
            raise_at_operator(error, self.node)

    def _shares(self, members: Sequence[Any], env_steps: int) -> list[int]:
        """Environment steps of each member: its own where members are batches; else the last one has them all."""
        if env_steps and all(isinstance(member, Batch) for member in members):
            shares = [member.env_steps for member in members]
            if sum(shares) != env_steps:
                raise broken(
                    self.node,
                    f"got members of {sum(shares)} env_steps together for an item of {env_steps}; counters would not add up",
                )
            return shares
        return [0] * (len(members) - 1) + [env_steps]
