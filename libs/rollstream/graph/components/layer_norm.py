"""Layer normalization."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.graph.initializers import Constant
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["LayerNorm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNorm:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset over the last axis (Ba et al. 2016, arXiv 1607.06450, equation 4)."""

    epsilon: float = 1e-5

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[..., F] -> [..., F]."""
        ops, width = scope.ops, x.shape[-1]
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(centred * centred, axis=-1, keepdims=True)
        scale = scope.parameter("scale", (width,), Constant(value=1.0))
        offset = scope.parameter("offset", (width,), Constant())
        return centred / ops.sqrt(variance + self.epsilon) * scale + offset
