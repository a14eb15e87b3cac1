"""Numbers within limits."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Clip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """What is below `low` becomes `low`, what is above `high` becomes `high`."""

    low: float
    high: float

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[...] -> float [...]."""
        return scope.ops.clip(scope.ops.to_float(x), self.low, self.high)
