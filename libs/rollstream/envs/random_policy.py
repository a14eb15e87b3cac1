"""A policy that acts at random within the bounds of the action space: for warm-up, and to try out environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.spaces import Columns, Leaf

__all__ = ["RandomPolicy"]


class RandomPolicy:
    """Uniform over choices and over bounded intervals, standard normal where a Box has no bound (shifted, where it has one).

    Args:
        generator: where chance comes from; equal generators give equal actions.
    """

    def __init__(self, action_leaves: Sequence[Leaf], *, generator: np.random.Generator) -> None:
        self._leaves = tuple(action_leaves)
        self._generator = generator

    def act(self, observation: Columns) -> Columns:
        batch = len(next(iter(observation.values())))
        return {leaf.name: self._sample(leaf, batch) for leaf in self._leaves}

    def _sample(self, leaf: Leaf, batch: int) -> npt.NDArray[Any]:
        shape = (batch, *leaf.shape)
        if leaf.kind == "multi_binary":
            return self._generator.integers(0, 2, shape).astype(leaf.dtype)
        if leaf.kind == "box":
            return self._box(leaf, shape)
        low = np.asarray(leaf.starts).reshape(leaf.shape)
        return self._generator.integers(low, low + np.asarray(leaf.counts).reshape(leaf.shape), shape).astype(leaf.dtype)

    def _box(self, leaf: Leaf, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        low, high = (np.asarray(bound).reshape(leaf.shape) for bound in (leaf.low, leaf.high))
        if np.dtype(leaf.dtype).kind != "f":
            return self._generator.integers(low, high, shape, endpoint=True).astype(leaf.dtype)
        uniform, normal = self._generator.random(shape), self._generator.standard_normal(shape)
        has_low, has_high = np.isfinite(low), np.isfinite(high)
        bounded = np.where(has_low, low, 0.0) + uniform * (np.where(has_high, high, 0.0) - np.where(has_low, low, 0.0))
        half = np.where(has_low, low + np.abs(normal), high - np.abs(normal))
        free = np.where(has_low | has_high, half, normal)
        return np.where(has_low & has_high, bounded, free).astype(leaf.dtype)
