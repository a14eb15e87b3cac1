"""average_gradients: several gradients become their mean, each counting as many times as it has rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rollstream.errors import SchemaMismatch
from rollstream.flow.step import Bound, Step
from rollstream.flow.steps.compute_gradients import GRADIENT, GRADIENT_ROWS
from rollstream.spaces import Batch

__all__ = ["average_gradients"]


def average_gradients() -> Step[Batch, Batch]:
    """One gradient in place of the K of a batch (of `gather_sync`, or of `window` and `concatenate`): the mean, weighted by rows.

    So it is the gradient of all rows together, however they were divided; it does not grow with the number of actors.
    """
    return Step(name="average_gradients", bind=_averaging, takes="batch", gives="batch")


def _averaging(side: object) -> Bound:
    return _averaged


def _averaged(batch: Batch) -> Batch:
    for column in (GRADIENT, GRADIENT_ROWS):
        if column not in batch.columns:
            raise SchemaMismatch(
                f"average_gradients needs the column {column!r}; the batch has: {', '.join(batch.columns) or 'none'}. "
                "Put compute_gradients() before the gather"
            )
    rows = batch.columns[GRADIENT_ROWS].astype(np.float64)
    if len(rows) < 2:
        return batch
    mean = (rows / rows.sum()) @ batch.columns[GRADIENT].astype(np.float64)
    columns = {GRADIENT: mean[None].astype(np.float32), GRADIENT_ROWS: np.array([rows.sum()], np.float32)}
    return replace(batch, columns=columns)
