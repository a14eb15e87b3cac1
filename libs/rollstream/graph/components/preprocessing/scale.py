"""Numbers in other units."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Scale"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """x * factor + offset."""

    factor: float
    offset: float = 0.0

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[...] -> float [...]."""
        return scope.ops.to_float(x) * self.factor + self.offset
