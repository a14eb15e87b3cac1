"""A way around a part."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.graph.components.fit import require_shape
from rollstream.graph.components.sequential import Layer
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Residual"]


@dataclass(frozen=True)
class Residual:
    """x + layer(x) (He et al. 2016, arXiv 1512.03385, equation 1)."""

    layer: Layer

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[...] -> [...], the same shape, which `layer` must keep."""
        change = self.layer.output(scope.child("layer"), x)
        require_shape(scope, change, tuple(x.shape), where="Residual.output", argument="layer(x)")
        return x + change
