"""Between [-1, 1], where networks choose, and the bounds of a Box, where environments act."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rollstream.errors import SpaceError
from rollstream.graph.ops import Array, Ops
from rollstream.spaces import Leaf

__all__ = ["Bounds", "bounded"]

MOST_INTEGERS = 1 << 24
"""Integers beyond it are not all numbers of float32, so a network could not choose among them."""


def bounded(leaf: Leaf) -> bool:
    """Whether a Box has bounds; False when it has none at all.

    Raises:
        SpaceError: only some entries have bounds, or only on one side.
    """
    finite = [math.isfinite(bound) for bound in (*leaf.low, *leaf.high)]
    if finite and all(finite):
        return True
    if not any(finite):
        return False
    raise SpaceError(
        f"{leaf.name}: a Box action needs bounds on both sides of every entry, or none at all, got low {list(leaf.low)} and "
        f"high {list(leaf.high)}; give the missing bounds, e.g. with gymnasium.wrappers.RescaleAction"
    )


@dataclass(frozen=True)
class Bounds:
    """The linear map of [-1, 1] onto a bounded Box and back. Integers get equal shares of [-1, 1]."""

    leaf: Leaf

    def __post_init__(self) -> None:
        leaf = self.leaf
        if leaf.kind != "box" or not bounded(leaf):
            raise SpaceError(f"{leaf.name}: needs a Box with finite bounds, got {leaf.kind} {list(leaf.shape)}")
        if self._whole and max(abs(bound) for bound in (*leaf.low, *leaf.high)) > MOST_INTEGERS:
            raise SpaceError(
                f"{leaf.name}: an integer Box action must stay within {-MOST_INTEGERS} to {MOST_INTEGERS}, got low "
                f"{min(leaf.low)} and high {max(leaf.high)}; give narrower bounds"
            )

    def to_environment(self, ops: Ops, unit: Array) -> Array:
        """[B, F] in [-1, 1] -> values [B, *shape], float, within the bounds up to rounding."""
        value = unit * ops.constant(self._half) + ops.constant(self._centre)
        if self._whole:
            low, high = (np.asarray(bound, np.float32) for bound in (self.leaf.low, self.leaf.high))
            value = ops.clip(ops.floor(value + 0.5), ops.constant(low), ops.constant(high))
        return ops.reshape(value, (unit.shape[0], *self.leaf.shape))

    def from_environment(self, ops: Ops, value: Array) -> Array:
        """Values [B, *shape] -> [B, F] in [-1, 1]; an entry that cannot vary gives 0."""
        flat = ops.to_float(ops.reshape(value, (value.shape[0], self.leaf.size)))
        return (flat - ops.constant(self._centre)) * ops.constant(self._per_half)

    @property
    def _whole(self) -> bool:
        return np.dtype(self.leaf.dtype).kind != "f"

    @cached_property
    def _half(self) -> npt.NDArray[np.float32]:
        low, high = np.asarray(self.leaf.low), np.asarray(self.leaf.high)
        return (high / 2 - low / 2 + (0.5 if self._whole else 0.0)).astype(np.float32)

    @cached_property
    def _centre(self) -> npt.NDArray[np.float32]:
        return (np.asarray(self.leaf.low) / 2 + np.asarray(self.leaf.high) / 2).astype(np.float32)

    @cached_property
    def _per_half(self) -> npt.NDArray[np.float32]:
        half = self._half.astype(np.float64)
        return np.divide(1.0, half, out=np.zeros_like(half), where=half > 0).astype(np.float32)
