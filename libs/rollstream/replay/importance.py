"""Importance weights of prioritized samples: the one place where they are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError

__all__ = ["BetaSchedule", "importance_weights", "rarest"]

NEXT_TO_NOTHING = 1e-100
"""Share of the mass at which a shard has none: its items have no weight, while others have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaSchedule:
    """How much of the bias is corrected: from `start` to `end` in a straight line over so many sampled items, then `end`.

    >>> BetaSchedule(start=0.4, end=1.0, over_samples=1_000).at(500)
    0.7
    """

    start: float = 0.4
    end: float = 1.0
    over_samples: int

    def __post_init__(self) -> None:
        if not (0.0 <= self.start <= 1.0 and 0.0 <= self.end <= 1.0):
            raise ConfigError(
                f"a beta schedule runs between 0 (corrects nothing) and 1, got start {self.start:g} and end {self.end:g}"
            )
        if self.over_samples < 1:
            raise ConfigError(f"over_samples must be at least 1, got {self.over_samples}; for a constant beta let start be end")

    def at(self, samples: int) -> float:
        """Beta after `samples` items were sampled."""
        share = min(1.0, max(0, samples) / self.over_samples)
        return self.start + (self.end - self.start) * share


def importance_weights(
    probability: npt.NDArray[np.float64],
    table_items: int,
    *,
    beta: float,
    normalize: Literal["batch", "table", "none"] = "batch",
    min_probability: float = 0.0,
) -> npt.NDArray[np.float32]:
    """(N * p) ** -beta: corrects the bias of drawing item i with probability p_i rather than 1 / N.

    Shapes: probability [B] -> [B]. Probabilities are > 0 for everything a table returns.

    Args:
        table_items: N, the items that could be drawn.
        beta: 0 corrects nothing, 1 everything.
        normalize: `batch` divides by the largest weight of the batch, `table` by the largest that any item of the table would have;
            both leave weights of at most 1, but only the latter gives an item the same weight in every batch. `none` leaves them.
        min_probability: the smallest of the table, for `table`.
    """
    if len(probability) and not (probability > 0.0).all():
        raise ConfigError(f"importance weights need probabilities > 0, the smallest is {probability.min():g}")
    if normalize == "table":
        if not 0.0 < min_probability <= 1.0:
            raise ConfigError(
                f"normalize='table' needs the smallest probability of the table, got {min_probability:g} (0: its sampler does not "
                "tell, as plug-ins do not); use normalize='batch'"
            )
        # Over shards, probabilities are a little older than the smallest of them: an item may have got rarer since.
        return np.minimum((min_probability / probability) ** beta, 1.0).astype(np.float32)
    weight = (table_items * probability) ** -beta
    if normalize == "batch" and len(weight):
        weight = weight / weight.max()
    return weight.astype(np.float32)


def rarest(shares: Sequence[float], smallest: Sequence[float]) -> float:
    """The smallest probability of the table, from each shard's share of the mass and smallest probability; 0: no shard tells.

    >>> rarest([0.75, 0.25], [0.1, 0.2])
    0.05
    """
    known = [share * least for share, least in zip(shares, smallest, strict=True) if share > NEXT_TO_NOTHING and least > 0.0]
    return min(known, default=0.0)
