"""A mixing network that is monotonic in what it mixes: QMIX's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rollstream.graph.components.activation import activate
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.fit import require_shape
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["MonotonicMixing"]


@dataclass(frozen=True, kw_only=True)
class MonotonicMixing:
    """Rashid et al. 2018 (arXiv 1803.11485), section 4: a network of one hidden layer whose weights hypernetworks make of the state.

        q [B, A] ─▶ elu(q @ |W1(state)| + b1(state)) ─▶ . |w2(state)| + v(state) ─▶ [B]

    Weights are made positive, so no agent's value rising can lower the total: the best joint action is each agent's own best.

    Attributes:
        units: hidden units; 32 in the paper.
        hyper_units: hidden units of the hypernetworks; 64 in the authors' later code, none (linear) in the paper's first figures.
    """

    units: int = 32
    hyper_units: int = 64

    @api
    def output(self, scope: Scope, q: Array, state: Array) -> Array:
        """Values [B, A] of the agents' actions and the state [B, S] -> their joint value [B]."""
        require_shape(scope, q, ("B", "A"), where="MonotonicMixing.output")
        require_shape(scope, state, ("B", "S"), where="MonotonicMixing.output")
        ops, agents = scope.ops, q.shape[1]
        first = ops.abs(self._made(scope, "first", state, agents * self.units))
        first = ops.reshape(first, (q.shape[0], agents, self.units))
        shift = Dense(features=self.units, gain=1.0).output(scope.child("shift"), state)
        hidden = activate(ops, "elu", ops.sum(q[:, :, None] * first, axis=1) + shift)
        second = ops.abs(self._made(scope, "second", state, self.units))
        return ops.sum(hidden * second, axis=-1) + self._value(scope.child("value"), state)

    def _made(self, scope: Scope, name: str, state: Array, width: int) -> Array:
        place = scope.child(name)
        hidden = self._hyper.output(place.child("hidden"), state)
        return Dense(features=width, gain=1.0).output(place.child("weight"), hidden)

    def _value(self, scope: Scope, state: Array) -> Array:
        hidden = Dense(features=self.units, activation="relu").output(scope.child("hidden"), state)
        return Dense(features=1, gain=1.0).output(scope.child("out"), hidden)[:, 0]

    @cached_property
    def _hyper(self) -> Dense:
        return Dense(features=self.hyper_units, activation="relu")
