"""A dense layer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollstream.graph.components.activation import activate
from rollstream.graph.components.fit import require_shape
from rollstream.graph.initializers import Constant, Orthogonal
from rollstream.graph.ops import Activation, Array
from rollstream.graph.scope import Scope, api

__all__ = ["Dense"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """`activation(x @ weight + bias)`, weight [F, features] orthogonal with `gain`, bias 0."""

    features: int
    activation: Activation | None = None
    gain: float = math.sqrt(2.0)

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, F] -> [B, features]."""
        require_shape(scope, x, ("B", "F"), where="Dense.output")
        weight = scope.parameter("weight", (x.shape[-1], self.features), Orthogonal(gain=self.gain))
        bias = scope.parameter("bias", (self.features,), Constant())
        return activate(scope.ops, self.activation, scope.ops.linear(x, weight, bias))
