"""A long short-term memory layer."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.graph.components.recurrent import Remembered, unrolled
from rollstream.graph.initializers import Blocks, Constant, Orthogonal
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Lstm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lstm:
    """Hochreiter & Schmidhuber 1997 with forget gates (Gers et al. 2000). Gates in torch's order: input, forget, candidate, output.

        c' = sigmoid(f) * c + sigmoid(i) * tanh(g)        h' = sigmoid(o) * tanh(c')

    Weights are orthogonal per gate; the forget gate starts with bias 1, so that a new network remembers (Jozefowicz et al. 2015).
    """

    units: int

    @property
    def state_size(self) -> int:
        """Numbers that one environment remembers: h, then c."""
        return 2 * self.units

    @api
    def step(self, scope: Scope, x: Array, state: Array) -> Remembered:
        """One step: x [B, F], state [B, 2H] -> output [B, H], state [B, 2H]."""
        hidden = self._hidden_weight(scope)
        (new,), y = self._next(scope, hidden, (state,), self._seen(scope, x))
        return Remembered(output=y, state=new)

    @api
    def sequence(self, scope: Scope, x: Array, first: Array, state: Array) -> Remembered:
        """T steps: x [B, T, F], state [B, 2H] -> output [B, T, H], state after the last step [B, 2H].

        `first` [B, T] is 1 (or true) where an episode begins: the state is 0 there.
        """
        hidden = self._hidden_weight(scope)
        return unrolled(
            scope.ops,
            lambda carry, seen: self._next(scope, hidden, carry, seen),
            seen=lambda rows: self._seen(scope, rows),
            x=x,
            first=first,
            state=state,
        )

    def _seen(self, scope: Scope, x: Array) -> Array:
        """What the gates see of the input, [B, 4H]."""
        weight = scope.parameter("weight", (x.shape[-1], 4 * self.units), Blocks((Orthogonal(gain=1.0),) * 4))
        zero, one = Constant(), Constant(value=1.0)
        return scope.ops.linear(x, weight, scope.parameter("bias", (4 * self.units,), Blocks((zero, one, zero, zero))))

    def _hidden_weight(self, scope: Scope) -> Array:
        return scope.parameter("hidden_weight", (self.units, 4 * self.units), Blocks((Orthogonal(gain=1.0),) * 4))

    def _next(self, scope: Scope, hidden: Array, carry: tuple[Array, ...], seen: Array) -> tuple[tuple[Array, ...], Array]:
        ops, units = scope.ops, self.units
        h, c = carry[0][:, :units], carry[0][:, units:]
        gates = seen + ops.matmul(h, hidden)
        i, f = ops.sigmoid(gates[:, :units]), ops.sigmoid(gates[:, units : 2 * units])
        g, o = ops.tanh(gates[:, 2 * units : 3 * units]), ops.sigmoid(gates[:, 3 * units :])
        c = f * c + i * g
        h = o * ops.tanh(c)
        return (ops.concatenate([h, c]),), h
