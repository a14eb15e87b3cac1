"""A convolution over images, and how wide what it makes is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rollstream.graph.components.activation import activate
from rollstream.graph.components.fit import require_shape
from rollstream.graph.initializers import Constant, Orthogonal
from rollstream.graph.ops import Activation, Array
from rollstream.graph.scope import Scope, api

__all__ = ["Conv", "Padding", "same_widths", "windows"]

Padding: TypeAlias = Literal["valid", "same"]
"""`valid`: windows inside of the image only; `same`: zeros around it, so that stride 1 keeps the size."""


def windows(size: int, *, kernel: int, stride: int, padding: Padding) -> int:
    """How many windows fit along an axis of `size`; below 1 when the axis is shorter than one window."""
    return -(-size // stride) if padding == "same" else (size - kernel) // stride + 1


def same_widths(size: int, *, kernel: int, stride: int) -> tuple[int, int]:
    """How much `same` padding adds before and after an axis: evenly, the odd one after (as TensorFlow does)."""
    missing = max((windows(size, kernel=kernel, stride=stride, padding="same") - 1) * stride + kernel - size, 0)
    return missing // 2, missing - missing // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv:
    """`activation(x * weight + bias)`, weight [features, C, kernel, kernel] orthogonal with `gain`, bias 0."""

    features: int
    kernel: int
    stride: int = 1
    padding: Padding = "valid"
    activation: Activation | None = None
    gain: float = math.sqrt(2.0)

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, C, H, W] of any numbers -> [B, features, H', W'], see `windows`."""
        require_shape(scope, x, ("B", "C", "H", "W"), where="Conv.output")
        shape = (self.features, x.shape[1], self.kernel, self.kernel)
        weight = scope.parameter("weight", shape, Orthogonal(gain=self.gain))
        bias = scope.parameter("bias", (self.features,), Constant())
        x = scope.ops.to_float(x)
        if self.padding == "same":
            down, across = (same_widths(size, kernel=self.kernel, stride=self.stride) for size in x.shape[2:])
            x = scope.ops.pad(x, ((0, 0), (0, 0), down, across))
        return activate(scope.ops, self.activation, scope.ops.conv(x, weight, bias, stride=self.stride))
