"""A stack of dense layers, each with its activation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rollstream.graph.components.activation import activate
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.layer_norm import LayerNorm
from rollstream.graph.ops import Activation, Array
from rollstream.graph.scope import Scope, api

__all__ = ["Mlp"]


@dataclass(frozen=True, kw_only=True)
class Mlp:
    """Hidden layers of the given widths; with none, its output is its input.

    Attributes:
        layer_norm: normalize between each dense layer and its activation.
    """

    hidden: tuple[int, ...]
    activation: Activation
    layer_norm: bool = False

    @cached_property
    def _layers(self) -> tuple[Dense, ...]:
        activation = None if self.layer_norm else self.activation
        return tuple(Dense(features=width, activation=activation) for width in self.hidden)

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, F] -> [B, hidden[-1]]."""
        for number, layer in enumerate(self._layers):
            place = scope.child(str(number))
            x = layer.output(place, x)
            if self.layer_norm:
                x = activate(scope.ops, self.activation, LayerNorm().output(place.child("norm"), x))
        return x
