"""A dense layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from rollstream.graph.components.activation import activate
from rollstream.graph.components.fit import require_shape
from rollstream.graph.initializers import Constant, Orthogonal
from rollstream.graph.ops import Activation, Array
from rollstream.graph.scope import Scope, api

__all__ = ["Dense"]

ZERO = Constant()


@dataclass(frozen=True, kw_only=True)
class Dense:
    """`activation(x @ weight + bias)`, weight [F, features] orthogonal with `gain`, bias 0."""

    features: int
    activation: Activation | None = None
    gain: float = math.sqrt(2.0)

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, F] -> [B, features]."""
        require_shape(scope, x, ("B", "F"), where="Dense.output")
        weight = scope.parameter("weight", (x.shape[-1], self.features), self._start)
        bias = scope.parameter("bias", (self.features,), ZERO)
        return activate(scope.ops, self.activation, scope.ops.linear(x, weight, bias))

    @cached_property
    def _start(self) -> Orthogonal:
        return Orthogonal(gain=self.gain)
