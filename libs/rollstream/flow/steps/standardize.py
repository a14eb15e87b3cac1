"""standardize: a column with mean 0 and standard deviation 1 over the batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rollstream.errors import NonFiniteError, SchemaMismatch
from rollstream.flow.step import Bound, Step
from rollstream.spaces import Batch

__all__ = ["standardize"]

SMALLEST_DEVIATION = 1e-8


def standardize(column: str) -> Step[Batch, Batch]:
    """Shift and scale `column` to mean 0 and standard deviation 1 over each batch; a constant column becomes 0."""
    return Step(
        name="standardize",
        bind=_Standardize(column),
        settings={"column": column},
        takes="batch",
        gives="batch",
    )


@dataclass(frozen=True, slots=True)
class _Standardize:
    column: str

    def __call__(self, side: object) -> Bound:
        return self.standardized

    def standardized(self, batch: Batch) -> Batch:
        """`batch` with the standardized column; other columns are shared, not copied."""
        if self.column not in batch.columns:
            known = ", ".join(batch.columns) or "none"
            raise SchemaMismatch(f"standardize needs the column {self.column!r}; the batch has: {known}")
        values = batch.columns[self.column]
        if not len(values):
            return batch
        mean = float(values.mean(dtype=np.float64))
        deviation = float(values.std(dtype=np.float64))
        if not np.isfinite(deviation):
            raise NonFiniteError(f"column {self.column!r} has values that are not finite (actor {batch.actor or 'joined'})")
        scaled = ((values - mean) / (deviation + SMALLEST_DEVIATION)).astype(np.float32)
        return replace(batch, columns={**batch.columns, self.column: scaled})
