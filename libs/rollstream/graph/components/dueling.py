"""The dueling head."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rollstream.graph.components.dense import Dense
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Dueling"]


@dataclass(frozen=True, kw_only=True)
class Dueling:
    """Q(s, a) = V(s) + A(s, a) - mean over a' of A(s, a') (Wang et al. 2016, arXiv 1511.06581, equation 9)."""

    actions: int

    @cached_property
    def _value(self) -> Dense:
        return Dense(features=1, gain=1.0)

    @cached_property
    def _advantage(self) -> Dense:
        return Dense(features=self.actions, gain=1.0)

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, F] -> action values [B, A]."""
        ops = scope.ops
        value = self._value.output(scope.child("value"), x)
        advantage = self._advantage.output(scope.child("advantage"), x)
        mean = ops.reshape(ops.sum(advantage, axis=-1), (x.shape[0], 1)) * (1.0 / self.actions)
        return value + (advantage - mean)
