"""A dense layer whose weights are drawn anew for every row: exploration that is learned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from rollstream.errors import ConfigError
from rollstream.graph.components.activation import activate
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.fit import require_shape
from rollstream.graph.initializers import Constant, Orthogonal
from rollstream.graph.ops import Activation, Array
from rollstream.graph.scope import Scope, api

__all__ = ["DEVIATION", "Layer", "NoisyDense", "dense", "drawn", "split_noise"]

DEVIATION = 0.5
"""sigma_0 of the paper."""


@dataclass(frozen=True, kw_only=True)
class NoisyDense:
    """Factorised Gaussian noise (Fortunato et al. 2018, arXiv 1706.10295, section 3):

        y = x @ (weight + weight_deviation * f(e_in) f(e_out)^T) + bias + bias_deviation * f(e_out),   f(e) = sign(e) sqrt(|e|)

    Noise is an input, one vector a row: e_in [F], then e_out [features]. Without it the layer is `Dense`: the mean, as for greedy
    actions. `weight` starts as that of `Dense`; deviations start as `deviation / sqrt(F)`, as in the paper.

    Attributes:
        deviation: sigma_0 of the paper.
    """

    features: int
    activation: Activation | None = None
    gain: float = math.sqrt(2.0)
    deviation: float = DEVIATION

    def __post_init__(self) -> None:
        if not self.deviation >= 0.0:
            raise ConfigError(f"NoisyDense: deviation must be >= 0, got {self.deviation}; 0.5 is that of the paper")

    @api
    def output(self, scope: Scope, x: Array, noise: Array | None = None) -> Array:
        """x [B, F], noise [B, F + features], standard normal -> [B, features]."""
        require_shape(scope, x, ("B", "F"), where="NoisyDense.output")
        width, ops = x.shape[-1], scope.ops
        start = Constant(value=self.deviation / math.sqrt(width))
        weight_deviation = scope.parameter("weight_deviation", (width, self.features), start)
        bias_deviation = scope.parameter("bias_deviation", (self.features,), start)
        weight = scope.parameter("weight", (width, self.features), self._start)
        y = ops.linear(x, weight, scope.parameter("bias", (self.features,), Constant()))
        if noise is not None:
            require_shape(scope, noise, ("B", width + self.features), where="NoisyDense.output", argument="noise")
            scaled = ops.sign(noise) * ops.sqrt(ops.abs(noise))
            y = y + scaled[:, width:] * ops.linear(x * scaled[:, :width], weight_deviation, bias_deviation)
        return activate(ops, self.activation, y)

    @cached_property
    def _start(self) -> Orthogonal:
        return Orthogonal(gain=self.gain)


Layer: TypeAlias = Dense | NoisyDense
"""A dense layer, with noise or without."""


def dense(*, features: int, gain: float, noisy: bool, deviation: float = DEVIATION) -> Layer:
    """A layer of a head, with or without noise."""
    return NoisyDense(features=features, gain=gain, deviation=deviation) if noisy else Dense(features=features, gain=gain)


def drawn(layer: Layer, scope: Scope, x: Array, noise: Array | None) -> Array:
    """What `layer` gives; `noise` is for one that has some."""
    return layer.output(scope, x, noise) if isinstance(layer, NoisyDense) else layer.output(scope, x)


def split_noise(noise: Array | None, sizes: tuple[int, ...]) -> tuple[Array | None, ...]:
    """Noise of several layers, [B, sum of sizes], as that of each; None for each without any."""
    if noise is None:
        return (None,) * len(sizes)
    parts, start = [], 0
    for size in sizes:
        parts.append(noise[:, start : start + size])
        start += size
    return tuple(parts)
