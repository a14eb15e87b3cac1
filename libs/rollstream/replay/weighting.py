"""Importance weights as a setting of a client: which beta, how normalized, and how far the schedule has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.replay.importance import BetaSchedule, importance_weights

__all__ = ["ImportanceWeights"]


@dataclass(slots=True, kw_only=True)
class ImportanceWeights:
    """Fills `Sample.weights`; one for each client, since it counts that client's samples.

    >>> weights = ImportanceWeights(beta=BetaSchedule(start=0.4, end=1.0, over_samples=1_000_000))

    Attributes:
        beta: constant, or a schedule over the items that were sampled.
        normalize: see `importance_weights`.
        samples: items weighted so far; set it when a run is continued, so that the schedule goes on.
    """

    beta: float | BetaSchedule = 0.4
    normalize: Literal["batch", "table", "none"] = "batch"
    samples: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.beta, BetaSchedule) and not 0.0 <= self.beta <= 1.0:
            raise ConfigError(f"beta must be between 0 (corrects nothing) and 1 (everything), got {self.beta:g}")
        if self.normalize not in ("batch", "table", "none"):
            raise ConfigError(f"normalize must be batch, table or none, got {self.normalize!r}")

    def of(self, probability: npt.NDArray[np.float64], *, table_items: int, min_probability: float) -> npt.NDArray[np.float32]:
        """Weights [B] of the next batch."""
        beta = self.beta.at(self.samples) if isinstance(self.beta, BetaSchedule) else self.beta
        self.samples += len(probability)
        return importance_weights(probability, table_items, beta=beta, normalize=self.normalize, min_probability=min_probability)
