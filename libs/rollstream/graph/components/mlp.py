"""A stack of dense layers, each with its activation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rollstream.graph.components.dense import Dense
from rollstream.graph.ops import Activation, Array
from rollstream.graph.scope import Scope, api

__all__ = ["Mlp"]


@dataclass(frozen=True, kw_only=True)
class Mlp:
    """Hidden layers of the given widths; with none, its output is its input."""

    hidden: tuple[int, ...]
    activation: Activation

    @cached_property
    def _layers(self) -> tuple[Dense, ...]:
        return tuple(Dense(features=width, activation=self.activation) for width in self.hidden)

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, F] -> [B, hidden[-1]]."""
        for number, layer in enumerate(self._layers):
            x = layer.output(scope.child(str(number)), x)
        return x
