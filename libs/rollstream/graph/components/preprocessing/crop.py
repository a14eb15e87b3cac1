"""A part of an image."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.graph.components.fit import require_shape
from rollstream.graph.components.image import Order
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Crop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crop:
    """`height` rows from row `top`, `width` columns from column `left`, both counted from 0."""

    top: int
    left: int
    height: int
    width: int
    order: Order

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, C, H, W] -> [B, C, height, width], or [B, H, W, C] -> [B, height, width, C]; the dtype stays."""
        require_shape(scope, x, ("B", "C", "H", "W") if self.order == "first" else ("B", "H", "W", "C"), where="Crop.output")
        rows, columns = slice(self.top, self.top + self.height), slice(self.left, self.left + self.width)
        return x[:, :, rows, columns] if self.order == "first" else x[:, rows, columns]
