"""return_priorities: sampled items get their new errors as priorities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rollstream.errors import SchemaMismatch
from rollstream.flow.sides import LearnerSide
from rollstream.flow.step import Bound, Step
from rollstream.spaces import Batch

if TYPE_CHECKING:
    from rollstream.flow.handles import TableHandle

__all__ = ["return_priorities"]


def return_priorities(table: TableHandle) -> Step[Batch, Batch]:
    """Set the priority of each sampled item (`key`) in `table` to the size of its `td_error`."""
    return Step(
        name="return_priorities",
        bind=_ReturnPriorities(table.name),
        where="learner",
        settings={"table": table.name},
        table=table.name,
        takes="batch",
        gives="batch",
    )


@dataclass(frozen=True, slots=True)
class _ReturnPriorities:
    table: str

    def __call__(self, side: LearnerSide) -> Bound:
        return _BoundReturn(side, self.table).returned


@dataclass(frozen=True, slots=True)
class _BoundReturn:
    side: LearnerSide
    table: str

    def returned(self, batch: Batch) -> Batch:
        """Send the priorities, pass the batch on."""
        for column in ("key", "td_error"):
            if column not in batch.columns:
                raise SchemaMismatch(
                    f"return_priorities needs the column {column!r}; the batch has: {', '.join(batch.columns) or 'none'}. "
                    "It stands behind samples(...) and a step that computes td_error"
                )
        self.side.update_priorities(self.table, batch.columns["key"], np.abs(batch.columns["td_error"]))
        return batch
