"""Weights by slot, their sum, and the slot at a given mass: what drawing by priority needs. Written and descended in batches.

A descent goes through `BlockTree` with all masses at once: by bisection of running sums, at the top and within each node; only
those of the leaves are made on the way, because to keep them would double the memory. Where rounding lets a mass fall beside every
child of positive weight, it is placed again by hand, so an item with weight 0 is never found.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rollstream.replay.block_tree import FAN, BlockTree, padded

__all__ = ["SumTree"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

HIGHEST_BITS = 0xFFFF_FFFF_FFFF_FFFF


class SumTree:
    """Weights of `capacity` slots.

    >>> tree = SumTree(3)
    >>> tree.set(np.array([0, 2]), np.array([1.0, 3.0]))
    >>> tree.total, tree.find(np.array([0.5, 1.0, 3.9])).tolist(), tree.least
    (4.0, [0, 2, 2], 1.0)
    """

    def __init__(self, capacity: int) -> None:
        self._leaves = np.zeros(padded(capacity), np.float64)
        self._sums = BlockTree(self._leaves, np.add, keeps_starts=True)
        self._least: BlockTree | None = None
        self._running = np.zeros(len(self._sums.levels[-1]) + 1, np.float64)

    @property
    def total(self) -> float:
        self._settle()
        return float(self._running[-1])

    @property
    def least(self) -> float:
        """The smallest weight above 0; infinite when there is none. Kept up to date from the first time that it is asked for."""
        self._settle()
        if self._least is None:
            self._least = BlockTree(self._leaves.view(np.uint64), np.minimum, lift=_less_one)
            self._least.combine_all()
        top = self._least.levels[-1]
        bits = int((_less_one(top) if len(self._least.levels) == 1 else top).min()) + 1
        return float(np.uint64(bits).view(np.float64)) if bits <= HIGHEST_BITS else np.inf

    def get(self, slots: Ints) -> Floats:
        return self._leaves.take(slots)

    def set(self, slots: Ints, weights: Floats) -> None:
        """Give `slots` [K] the `weights` [K] (finite, >= 0); of a repeated slot the last weight counts."""
        if not len(slots):
            return
        self._leaves[slots] = weights
        if self._sums.touch(slots):
            self._settle()

    def scale(self, factor: float, *, floor: float) -> None:
        """Multiply every weight; none above 0 falls below `floor`."""
        positive = self._leaves > 0.0
        self._leaves *= factor
        np.maximum(self._leaves, floor, out=self._leaves, where=positive)
        self._sums.combine_all()
        np.cumsum(self._sums.levels[-1], out=self._running[1:])
        if self._least is not None:
            self._least.combine_all()

    def _settle(self) -> None:
        if self._sums.settle(companion=self._least):
            np.cumsum(self._sums.levels[-1], out=self._running[1:])

    def find(self, mass: Floats) -> Ints:
        """Slots [K] at `mass` [K] in [0, total): the first whose running sum exceeds it. Only for total > 0."""
        self._settle()
        node = self._running[1:].searchsorted(mass, side="right")
        np.minimum(node, len(self._running) - 2, out=node)
        rest = mass - self._running.take(node)
        for starts in reversed(self._sums.starts):
            node *= FAN
            for step in (4, 2, 1):  # the last child that starts at or before the mass
                node += np.multiply(starts[step].take(node) <= rest, step)
            rest -= starts[0].take(node)
        if len(self._sums.levels) > 1:
            node = self._leaf_at(node * FAN, rest)
        astray = self._leaves.take(node) == 0.0
        if astray.any():
            node[astray] = [self._find_by_hand(float(one)) for one in mass[astray]]
        return node

    def _leaf_at(self, first: Ints, rest: Floats) -> Ints:
        """The child, among eight leaves from `first` on, whose running sum exceeds what is left of the mass; else the last."""
        running = self._leaves.take(first)
        child = (running <= rest).view(np.int8)
        for lane in self._sums.lanes[0][1:-1]:
            running += lane.take(first)
            child += (running <= rest).view(np.int8)
        leaf: Ints = first + child
        return leaf

    def _find_by_hand(self, mass: float) -> int:
        """One descent that enters children of positive weight only: the last of them where the mass lies behind all."""
        node = 0
        for depth, level in enumerate(reversed(self._sums.levels)):
            weights = level if depth == 0 else level[node * FAN : (node + 1) * FAN]
            choices = np.flatnonzero(weights > 0.0)
            running = np.cumsum(weights[choices])
            choice = min(int(running.searchsorted(mass, side="right")), len(choices) - 1)
            mass -= float(running[choice - 1]) if choice else 0.0
            node = node * FAN * (depth > 0) + int(choices[choice])
        return node


def _less_one(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Bits of doubles >= 0 in the same order, but 0 behind all others."""
    return bits - np.uint64(1)
