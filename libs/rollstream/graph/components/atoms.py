"""The head of C51: how likely each of K returns is, for each action."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.graph.components.noisy_dense import DEVIATION, dense, drawn, split_noise
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Atoms"]


@dataclass(frozen=True, kw_only=True)
class Atoms:
    """A distribution over `atoms` returns from `low` to `high` (Bellemare et al. 2017, arXiv 1707.06887, section 4.1).

    Attributes:
        dueling: logits are those of a value and an advantage stream (Hessel et al. 2018, arXiv 1710.02298, section 3).
        noisy: its layers are `NoisyDense`; deviation: of their noise.
    """

    actions: int
    atoms: int = 51
    low: float = -10.0
    high: float = 10.0
    dueling: bool = False
    noisy: bool = False
    deviation: float = DEVIATION

    def __post_init__(self) -> None:
        if self.atoms < 2 or self.low >= self.high:
            raise ConfigError(f"Atoms needs at least 2 atoms and low < high, got {self.atoms}, {self.low:g} and {self.high:g}")

    @cached_property
    def support(self) -> npt.NDArray[np.float32]:
        """The returns, [K], in equal steps."""
        return np.linspace(self.low, self.high, self.atoms, dtype=np.float32)

    def noise_sizes(self, inputs: int) -> tuple[int, ...]:
        """Noise of its layers, with `inputs` features: the value stream's first, where there is one."""
        wide = inputs + self.actions * self.atoms
        return (inputs + self.atoms, wide) if self.dueling else (wide,)

    @api
    def output(self, scope: Scope, x: Array, noise: Array | None = None) -> Array:
        """x [B, F], noise [B, ...] -> log-probabilities [B, A, K]."""
        return scope.ops.log_softmax(self._logits(scope, x, noise))

    @api
    def values(self, scope: Scope, x: Array, noise: Array | None = None) -> Array:
        """As `output` -> action values [B, A]: the mean of each distribution."""
        ops = scope.ops
        return ops.sum(ops.exp(self.output(scope, x, noise)) * ops.constant(self.support), axis=-1)

    def _logits(self, scope: Scope, x: Array, noise: Array | None) -> Array:
        ops, rows = scope.ops, x.shape[0]
        wide = dense(features=self.actions * self.atoms, gain=1.0, noisy=self.noisy, deviation=self.deviation)
        if not self.dueling:
            return ops.reshape(drawn(wide, scope, x, noise), (rows, self.actions, self.atoms))
        of_value, of_advantage = split_noise(noise, self.noise_sizes(x.shape[-1]))
        advantage = ops.reshape(drawn(wide, scope.child("advantage"), x, of_advantage), (rows, self.actions, self.atoms))
        value = drawn(
            dense(features=self.atoms, gain=1.0, noisy=self.noisy, deviation=self.deviation), scope.child("value"), x, of_value
        )
        return ops.reshape(value, (rows, 1, self.atoms)) + advantage - ops.mean(advantage, axis=1, keepdims=True)
