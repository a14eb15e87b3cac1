"""Images of another size. A resize is linear in the pixels, row by row and column by column, so it is two multiplications with
constant matrices, the same on every backend:

    y [H', W'] = rows [H', H] @ x [H, W] @ columns [W, W']
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.graph.components.fit import require_shape
from rollstream.graph.components.image import Order, channels_first
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Method", "Resize", "resize_matrix"]

Method: TypeAlias = Literal["area", "bilinear"]
"""`area`: the mean of what each new pixel covers; `bilinear`: between the two nearest pixels of each axis."""


@cache
def resize_matrix(size: int, new_size: int, method: Method) -> npt.NDArray[np.float32]:
    """What each new pixel takes of each old one along an axis, [new_size, size]; rows sum to 1.

    `bilinear` has pixel centres at half integers and no antialiasing (torch's `interpolate(align_corners=False)`): enlarges well, and
    skips pixels when it shrinks by more than 2. `area` weighs pixels by how much of them is covered (OpenCV's INTER_AREA when it
    shrinks, torch's `area` where the sizes divide), which is its own antialiasing.
    """
    scale = size / new_size
    new, old = np.arange(new_size)[:, None], np.arange(size)[None, :]
    if method == "area":
        covered = np.minimum((new + 1) * scale, old + 1) - np.maximum(new * scale, old)
        return np.asarray(np.maximum(covered, 0.0) / scale, np.float32)
    centre = np.clip((new + 0.5) * scale - 0.5, 0.0, size - 1.0)
    return np.asarray(np.maximum(1.0 - np.abs(centre - old), 0.0), np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Images of `height` by `width`; the channel axis stays where it is."""

    height: int
    width: int
    order: Order
    method: Method = "area"

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, C, H, W] -> float [B, C, height, width], or [B, H, W, C] -> [B, height, width, C]."""
        require_shape(scope, x, ("B", "C", "H", "W") if self.order == "first" else ("B", "H", "W", "C"), where="Resize.output")
        ops = scope.ops
        image = ops.to_float(channels_first(ops, x, self.order))
        rows = resize_matrix(image.shape[2], self.height, self.method)
        columns = resize_matrix(image.shape[3], self.width, self.method).T
        y = ops.matmul(ops.matmul(ops.constant(rows), image), ops.constant(columns))
        return y if self.order == "first" else ops.transpose(y, (0, 2, 3, 1))
