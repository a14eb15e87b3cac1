"""Between the numbers of a policy, [-1, 1], and those of a bounded Box."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import SpaceError
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf

__all__ = ["ActionScale"]


@dataclass(frozen=True)
class ActionScale:
    """-1 is the Box's low, 1 its high, each number with bounds of its own."""

    leaf: Leaf

    def __post_init__(self) -> None:
        if self.leaf.kind != "box" or not np.isfinite([*self.leaf.low, *self.leaf.high]).all():
            raise SpaceError(
                f"{self.leaf.name}: ActionScale.to_environment, argument x: needs a Box with finite bounds, got "
                f"{self.leaf.kind} {list(self.leaf.shape)}; use a policy without squashing, or bound the space"
            )

    @api
    def to_environment(self, scope: Scope, x: Array) -> Array:
        """[B, ...] in [-1, 1] (what is outside is clipped) -> [B, ...] within the bounds."""
        ops = scope.ops
        return ops.constant(self._middle) + ops.clip(x, -1.0, 1.0) * ops.constant(self._half)

    @api
    def from_environment(self, scope: Scope, x: Array) -> Array:
        """[B, ...] within the bounds -> [B, ...] in [-1, 1]; 0 where low equals high."""
        ops = scope.ops
        return (ops.to_float(x) - ops.constant(self._middle)) * ops.constant(self._inverse)

    @cached_property
    def _bounds(self) -> npt.NDArray[np.float64]:
        return np.array([self.leaf.low, self.leaf.high]).reshape(2, *self.leaf.shape)

    @cached_property
    def _middle(self) -> npt.NDArray[Any]:
        middle: npt.NDArray[Any] = self._bounds.sum(axis=0) / 2
        return middle.astype(np.float32)

    @cached_property
    def _half(self) -> npt.NDArray[Any]:
        half: npt.NDArray[Any] = (self._bounds[1] - self._bounds[0]) / 2
        return half.astype(np.float32)

    @cached_property
    def _inverse(self) -> npt.NDArray[Any]:
        return np.asarray(np.divide(1.0, self._half, out=np.zeros_like(self._half), where=self._half > 0))
