"""A gated recurrent layer."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.graph.components.recurrent import Remembered, unrolled
from rollstream.graph.initializers import Blocks, Constant, Orthogonal
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Gru"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gru:
    """Cho et al. 2014 (arXiv 1406.1078) in torch's form. Gates in torch's order: reset, update, candidate.

        n = tanh(x_n + sigmoid(r) * (h_n + hidden_bias))        h' = (1 - sigmoid(z)) * n + sigmoid(z) * h

    Weights are orthogonal per gate, biases 0.
    """

    units: int

    @property
    def state_size(self) -> int:
        """Numbers that one environment remembers: h."""
        return self.units

    @api
    def step(self, scope: Scope, x: Array, state: Array) -> Remembered:
        """One step: x [B, F], state [B, H] -> output [B, H], state [B, H]."""
        (new,), y = self._next(scope, self._hidden(scope), (state,), self._seen(scope, x))
        return Remembered(output=y, state=new)

    @api
    def sequence(self, scope: Scope, x: Array, first: Array, state: Array) -> Remembered:
        """T steps: x [B, T, F], state [B, H] -> output [B, T, H], state after the last step [B, H].

        `first` [B, T] is 1 (or true) where an episode begins: the state is 0 there.
        """
        hidden = self._hidden(scope)
        return unrolled(
            scope.ops,
            lambda carry, seen: self._next(scope, hidden, carry, seen),
            seen=lambda rows: self._seen(scope, rows),
            x=x,
            first=first,
            state=state,
        )

    def _seen(self, scope: Scope, x: Array) -> Array:
        """What the gates see of the input, [B, 3H]."""
        weight = scope.parameter("weight", (x.shape[-1], 3 * self.units), Blocks((Orthogonal(gain=1.0),) * 3))
        return scope.ops.linear(x, weight, scope.parameter("bias", (3 * self.units,), Constant()))

    def _hidden(self, scope: Scope) -> tuple[Array, Array]:
        weight = scope.parameter("hidden_weight", (self.units, 3 * self.units), Blocks((Orthogonal(gain=1.0),) * 3))
        return weight, scope.parameter("hidden_bias", (self.units,), Constant())

    def _next(
        self, scope: Scope, hidden: tuple[Array, Array], carry: tuple[Array, ...], seen: Array
    ) -> tuple[tuple[Array, ...], Array]:
        ops, units, (weight, bias), (h,) = scope.ops, self.units, hidden, carry
        known = ops.matmul(h, weight)
        r = ops.sigmoid(seen[:, :units] + known[:, :units])
        z = ops.sigmoid(seen[:, units : 2 * units] + known[:, units : 2 * units])
        n = ops.tanh(seen[:, 2 * units :] + r * (known[:, 2 * units :] + bias))
        h = n + z * (h - n)
        return (h,), h
