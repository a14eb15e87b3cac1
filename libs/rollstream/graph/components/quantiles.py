"""The head of QR-DQN: the quantiles of the return, for each action."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.graph.components.dense import Dense
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Quantiles"]


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """`quantiles` returns of equal probability (Dabney et al. 2018, arXiv 1710.10044, section 4)."""

    actions: int
    quantiles: int = 200

    def __post_init__(self) -> None:
        if self.quantiles < 1:
            raise ConfigError(f"Quantiles needs at least 1 quantile, got {self.quantiles}")

    @cached_property
    def fractions(self) -> npt.NDArray[np.float32]:
        """Which quantile each output is: the middle of its share, (2 k + 1) / 2K for k = 0 ... K-1, [K] (lemma 2)."""
        return ((2 * np.arange(self.quantiles) + 1) / (2 * self.quantiles)).astype(np.float32)

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, F] -> returns [B, A, K]."""
        y = Dense(features=self.actions * self.quantiles, gain=1.0).output(scope, x)
        return scope.ops.reshape(y, (x.shape[0], self.actions, self.quantiles))

    @api
    def values(self, scope: Scope, x: Array) -> Array:
        """[B, F] -> action values [B, A]: the mean of the quantiles."""
        return scope.ops.mean(self.output(scope, x), axis=-1)
