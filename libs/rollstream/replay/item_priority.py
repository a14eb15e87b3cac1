"""The priority of a new item, when its writer knows better than "the highest so far".

TdMix is the mix of the recurrent replay paper (R2D2): eta * max|d| + (1 - eta) * mean|d| over the TD errors d of the item's steps.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, NonFiniteError, TableError
from rollstream.replay.acted_error import ActedError
from rollstream.replay.open_steps import ItemRuns, OpenSteps
from rollstream.replay.ranges import concatenated_ranges

__all__ = ["ItemPriority", "Priority", "TdMix", "columns_of", "mixed", "require_priority", "with_priority"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TdMix:
    """eta * max|d| + (1 - eta) * mean|d| of a scalar column over the steps of an item, without lead and bootstrap row.

    >>> TdMix("td_error", eta=0.9)
    TdMix(column='td_error', eta=0.9)
    """

    column: str
    eta: float = 0.9

    def __post_init__(self) -> None:
        if not 0.0 <= self.eta <= 1.0:
            raise ConfigError(f"TdMix: eta must be between 0 and 1, got {self.eta}")


Priority: TypeAlias = float | TdMix | None
"""Of new items: a number for all, computed from a column, or None: the highest of the table so far."""

ItemPriority: TypeAlias = Priority | ActedError
"""Of items that are windows over steps."""


def require_priority(priority: ItemPriority) -> None:
    """Refuse a number that no item may have."""
    if isinstance(priority, int | float) and not (priority >= 0 and math.isfinite(priority)):
        raise TableError(f"priorities must be finite and >= 0, got {priority:g}; take the absolute TD error, for example")


def columns_of(priority: ItemPriority) -> tuple[str, ...]:
    """Columns that are needed to compute it."""
    if isinstance(priority, ActedError):
        return priority.columns
    return (priority.column,) if isinstance(priority, TdMix) else ()


def with_priority(priority: ItemPriority, steps: OpenSteps, runs: ItemRuns, *, bootstrap_rows: int) -> ItemRuns:
    """`runs` with their priorities; the last `bootstrap_rows` rows of an item are no steps of it."""
    if priority is None or not len(runs.env):
        return runs
    if isinstance(priority, ActedError):
        begin = steps.offsets[runs.env] + runs.start
        values = priority.of(steps, begin if runs.lead is None else begin + runs.lead, begin + runs.length - 1)
    elif isinstance(priority, TdMix):
        lead = 0 if runs.lead is None else runs.lead
        first = steps.offsets[runs.env] + runs.start + lead
        values = mixed(priority, steps.columns[priority.column], first, np.maximum(1, runs.length - lead - bootstrap_rows))
    else:
        values = np.full(len(runs.env), priority, np.float32)
    return dataclasses.replace(runs, priority=values)


def mixed(mix: TdMix, column: npt.NDArray[np.generic], first: Ints, lengths: Ints) -> npt.NDArray[np.float32]:
    """The mix over `lengths` [K] rows of `column` from the rows `first` [K]. Shapes: -> [K]."""
    errors = np.abs(column[concatenated_ranges(first, lengths)].astype(np.float64))
    if not np.isfinite(errors).all():
        raise NonFiniteError(
            f"column {mix.column!r} has a NaN or an infinity where item priorities are computed from it; write finite TD errors"
        )
    begins = np.cumsum(lengths) - lengths
    largest, mean = np.maximum.reduceat(errors, begins), np.add.reduceat(errors, begins) / lengths
    return (mix.eta * largest + (1.0 - mix.eta) * mean).astype(np.float32)
