"""Priorities of new items that actors compute themselves, from the values that they acted by (Ape-X, R2D2).

    rows        q_taken 0   q_taken 1   q_taken 2          of the action that was taken
                reward 0    reward 1    reward 2
                            q_max 1     q_max 2     q_max 3      of the best action, at the final observation too

    error t = reward t + discount reward t+1 + ... + discount^m q_max t+m - q_taken t

So a new item is sampled as often as it deserves at once, and not with the highest priority so far (Horgan et al. 2018, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, NonFiniteError
from rollstream.replay.open_steps import OpenSteps
from rollstream.replay.ranges import concatenated_ranges
from rollstream.spaces import Flag

__all__ = ["ActedError"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
TERMINATED = int(Flag.TERMINATED)
SLOPE = 1e-3
"""Of the compressed scale far away (Pohlen et al. 2018, arXiv 1805.11593)."""


@dataclass(frozen=True, slots=True)
class ActedError:
    """The size of an item's TD error by the values that the actor had, for `NStep` and `Sequence`.

    Args:
        discount: of one step.
        steps: None: one error an item, from its first step to its last row, as n-step items are learned from. Else one error a step,
            over so many steps (fewer at the item's end), mixed as eta * max + (1 - eta) * mean, as sequences are.
        eta: of the mix.
        floor: added, so that no item's probability falls to 0.
        compressed: values are on R2D2's compressed scale h, and so are errors.
        taken, best: columns of the rows with the values of the action that was taken, and of the best one.
    """

    discount: float
    steps: int | None = None
    eta: float = 0.9
    floor: float = 0.0
    compressed: bool = False
    taken: str = "q_taken"
    best: str = "q_max"

    def __post_init__(self) -> None:
        if not (0.0 <= self.discount <= 1.0 and 0.0 <= self.eta <= 1.0):
            raise ConfigError(f"ActedError: discount and eta must be between 0 and 1, got {self.discount} and {self.eta}")
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"ActedError: steps must be >= 1, or None for whole items, got {self.steps}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of rows that it looks at."""
        return ("reward", self.taken, self.best)

    def of(self, steps: OpenSteps, first: Ints, last: Ints) -> npt.NDArray[np.float32]:
        """Priorities of items whose cores go from row `first` to row `last` [K] among the open rows. Shapes: -> [K]."""
        if self.steps is None:
            return np.asarray(np.abs(self._errors(steps, first, last)) + self.floor, np.float32)
        counts = np.maximum(1, last - first)
        row = concatenated_ranges(first, counts)
        sizes = np.abs(self._errors(steps, row, np.minimum(row + self.steps, np.repeat(last, counts))))
        begins = np.cumsum(counts) - counts
        largest, mean = np.maximum.reduceat(sizes, begins), np.add.reduceat(sizes, begins) / counts
        return np.asarray(self.eta * largest + (1.0 - self.eta) * mean + self.floor, np.float32)

    def _errors(self, steps: OpenSteps, row: Ints, until: Ints) -> Floats:
        """From rows [M] to the rows that are bootstrapped from [M]."""
        reward, taken, best = (steps.columns[name].astype(np.float64) for name in self.columns)
        ahead = until - row
        gained = np.zeros(len(row))
        for step in range(int(ahead.max(initial=0))):
            gained += np.where(step < ahead, self.discount**step * reward[np.minimum(row + step, until)], 0.0)
        goes_on = (steps.flags[until] & TERMINATED) == 0
        wanted = gained + np.where(goes_on, self.discount**ahead * self._expanded(best[until]), 0.0)
        errors: Floats = self._scaled(wanted) - taken[row]
        if not np.isfinite(errors).all():
            raise NonFiniteError(
                f"columns {', '.join(self.columns)} have a NaN or an infinity where item priorities are computed from them; "
                "write finite values"
            )
        return errors

    def _scaled(self, x: Floats) -> Floats:
        """h(x) = sign(x) (sqrt(|x| + 1) - 1) + e x, where values are compressed."""
        return np.sign(x) * (np.sqrt(np.abs(x) + 1.0) - 1.0) + SLOPE * x if self.compressed else x

    def _expanded(self, x: Floats) -> Floats:
        """The inverse of h."""
        if not self.compressed:
            return x
        root = np.sqrt(1.0 + 4.0 * SLOPE * (np.abs(x) + 1.0 + SLOPE))
        return np.sign(x) * (((root - 1.0) / (2.0 * SLOPE)) ** 2 - 1.0)
