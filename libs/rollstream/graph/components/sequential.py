"""Parts one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Layer", "Sequential"]


class Layer(Protocol):
    """A part from one array to one array."""

    def output(self, scope: Scope, x: Array, /) -> Array: ...


@dataclass(frozen=True)
class Sequential:
    """Each part sees what the one before it gave; they are called `0`, `1`, ... . With none, the output is the input."""

    layers: tuple[Layer, ...]

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """What the last layer gives."""
        for number, layer in enumerate(self.layers):
            x = layer.output(scope.child(str(number)), x)
        return x
