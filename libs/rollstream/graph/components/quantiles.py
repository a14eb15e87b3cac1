"""The head of QR-DQN: the quantiles of the return, for each action."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.graph.components.noisy_dense import DEVIATION, dense, drawn
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Quantiles"]


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """`quantiles` returns of equal probability (Dabney et al. 2018, arXiv 1710.10044, section 4).

    Attributes:
        noisy: its layer is `NoisyDense`; deviation: of its noise.
    """

    actions: int
    quantiles: int = 200
    noisy: bool = False
    deviation: float = DEVIATION

    def __post_init__(self) -> None:
        if self.quantiles < 1:
            raise ConfigError(f"Quantiles needs at least 1 quantile, got {self.quantiles}")

    @cached_property
    def fractions(self) -> npt.NDArray[np.float32]:
        """Which quantile each output is: the middle of its share, (2 k + 1) / 2K for k = 0 ... K-1, [K] (lemma 2)."""
        return ((2 * np.arange(self.quantiles) + 1) / (2 * self.quantiles)).astype(np.float32)

    def noise_sizes(self, inputs: int) -> tuple[int, ...]:
        """Noise of its layer, with `inputs` features."""
        return (inputs + self.actions * self.quantiles,)

    @api
    def output(self, scope: Scope, x: Array, noise: Array | None = None) -> Array:
        """x [B, F], noise [B, ...] -> returns [B, A, K]."""
        y = drawn(
            dense(features=self.actions * self.quantiles, gain=1.0, noisy=self.noisy, deviation=self.deviation), scope, x, noise
        )
        return scope.ops.reshape(y, (x.shape[0], self.actions, self.quantiles))

    @api
    def values(self, scope: Scope, x: Array, noise: Array | None = None) -> Array:
        """As `output` -> action values [B, A]: the mean of the quantiles."""
        return scope.ops.mean(self.output(scope, x, noise), axis=-1)
