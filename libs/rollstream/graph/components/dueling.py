"""The dueling head."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rollstream.graph.components.noisy_dense import DEVIATION, Layer, dense, drawn, split_noise
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Dueling"]


@dataclass(frozen=True, kw_only=True)
class Dueling:
    """Q(s, a) = V(s) + A(s, a) - mean over a' of A(s, a') (Wang et al. 2016, arXiv 1511.06581, equation 9).

    Attributes:
        noisy: both streams are `NoisyDense`; deviation: of their noise.
    """

    actions: int
    noisy: bool = False
    deviation: float = DEVIATION

    def noise_sizes(self, inputs: int) -> tuple[int, ...]:
        """Noise of the value stream and of the advantage stream, with `inputs` features."""
        return (inputs + 1, inputs + self.actions)

    @cached_property
    def _value(self) -> Layer:
        return dense(features=1, gain=1.0, noisy=self.noisy, deviation=self.deviation)

    @cached_property
    def _advantage(self) -> Layer:
        return dense(features=self.actions, gain=1.0, noisy=self.noisy, deviation=self.deviation)

    @api
    def output(self, scope: Scope, x: Array, noise: Array | None = None) -> Array:
        """x [B, F], noise of both streams [B, ...] -> action values [B, A]."""
        ops = scope.ops
        of_value, of_advantage = split_noise(noise, self.noise_sizes(x.shape[-1]))
        value = drawn(self._value, scope.child("value"), x, of_value)
        advantage = drawn(self._advantage, scope.child("advantage"), x, of_advantage)
        mean = ops.reshape(ops.sum(advantage, axis=-1), (x.shape[0], 1)) * (1.0 / self.actions)
        return value + (advantage - mean)
