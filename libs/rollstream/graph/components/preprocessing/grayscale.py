"""From color to brightness."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.graph.components.fit import require_shape
from rollstream.graph.components.image import Order
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Grayscale"]

RED, GREEN, BLUE = 0.299, 0.587, 0.114
"""ITU-R BT.601-7, section 2.5.1: luminance of R, G, B."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grayscale:
    """0.299 R + 0.587 G + 0.114 B, not rounded; the channel axis stays where it is, with one entry."""

    order: Order

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, 3, H, W] -> float [B, 1, H, W], or [B, H, W, 3] -> [B, H, W, 1]."""
        axes: tuple[str | int, ...] = ("B", 3, "H", "W") if self.order == "first" else ("B", "H", "W", 3)
        require_shape(scope, x, axes, where="Grayscale.output")
        x = scope.ops.to_float(x)
        red, green, blue = (x[:, i : i + 1] if self.order == "first" else x[:, :, :, i : i + 1] for i in range(3))
        return red * RED + green * GREEN + blue * BLUE
