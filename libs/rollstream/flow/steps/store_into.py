"""store_into: rows go from the actor straight to a table; only counts travel on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollstream.flow.sides import ActorSide
from rollstream.flow.step import Bound, Step
from rollstream.spaces import Batch, Rollout

if TYPE_CHECKING:
    from rollstream.flow.handles import TableHandle

__all__ = ["STORE_WAITED_METRIC", "store_into"]

STORE_WAITED_METRIC = "store_waited_s"
"""Metric of its batches: seconds that the writer waited for room in the table."""


def store_into(table: TableHandle, rule: Any) -> Step[Rollout, Batch]:
    """Write every rollout to `table`, cut into items by `rule` (e.g. `NStep(3)`). Gives batches of counts without columns."""
    return Step(
        name="store_into",
        bind=_StoreInto(table.name, rule),
        where="actor",
        settings={"table": table.name, "rule": repr(rule)},
        table=table.name,
        takes="rollout",
        gives="batch",
        settles="stored",
    )


@dataclass(frozen=True, slots=True)
class _StoreInto:
    table: str
    rule: Any

    def __call__(self, side: ActorSide) -> Bound:
        return _BoundStore(side, self.table, self.rule).stored


@dataclass(frozen=True, slots=True)
class _BoundStore:
    side: ActorSide
    table: str
    rule: Any

    def stored(self, rollout: Rollout) -> Batch:
        """Write the rollout; what remains of it is what it counts for."""
        result = self.side.store(self.table, self.rule, rollout)
        return Batch(
            columns={},
            env_steps=rollout.env_steps,
            version=rollout.version,
            newest_version=rollout.version,
            episodes=rollout.episodes,
            metrics={"stored_items": float(result.items), STORE_WAITED_METRIC: result.waited_s},
        )
