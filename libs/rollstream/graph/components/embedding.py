"""A vector for each of a few choices."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollstream.graph.components.fit import require_integers
from rollstream.graph.initializers import Normal
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Embedding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """Row `choice - start` of a table [count, features], standard normal at first; for a Discrete space with many choices, where
    one-hot features would be wide.

    Attributes:
        count, start: number of choices, and the smallest one.
    """

    count: int
    features: int
    start: int = 0

    @api
    def output(self, scope: Scope, choice: Array) -> Array:
        """Integers [...] from start to start + count - 1 -> [..., features]."""
        require_integers(scope, choice, where="Embedding.output", argument="choice")
        ops, shape = scope.ops, tuple(choice.shape)
        table = scope.parameter("table", (self.count, self.features), Normal())
        index = ops.reshape(ops.to_int(choice), (math.prod(shape),)) - self.start
        return ops.reshape(ops.rows(table, index), (*shape, self.features))
