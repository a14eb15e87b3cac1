"""A sum tree in one NumPy array, written and descended in batches.

    nodes[1] is the sum of all; node i has children 2i and 2i+1; slot s is leaf `leaves + s`.

Writing marks leaves; sums are made right when they are next asked for, so a slot that is emptied and filled between two samples
costs one way up the tree. Sums are never adjusted by differences but added up anew from both children, so rounding errors do not
accumulate; and a descent never enters a child whose sum is 0, so an item with weight 0 is never found, wherever the mass falls.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["SumTree"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LONGEST_LIST = 100_000
"""Changed leaves that are remembered at most, when nobody asks for sums for a long time."""


class SumTree:
    """Weights of `capacity` slots, their sum, and the slot at a given mass.

    >>> tree = SumTree(3)
    >>> tree.set(np.array([0, 2]), np.array([1.0, 3.0]))
    >>> tree.total, tree.find(np.array([0.5, 1.0, 3.9])).tolist()
    (4.0, [0, 2, 2])
    """

    def __init__(self, capacity: int) -> None:
        self._depth = max(0, (capacity - 1).bit_length())
        self._leaves = 1 << self._depth
        self._nodes = np.zeros(2 * self._leaves, np.float64)
        self._left = self._nodes[0::2]
        self._right = self._nodes[1::2]
        self._changed: list[Ints] = []
        self._changes = 0

    @property
    def total(self) -> float:
        self._add_up()
        return float(self._nodes[1])

    def get(self, slots: Ints) -> Floats:
        return self._nodes[slots + self._leaves]

    def set(self, slots: Ints, weights: Floats) -> None:
        """Give `slots` [K] the `weights` [K] (finite, >= 0); of a repeated slot the last weight counts."""
        if not len(slots):
            return
        leaves = slots + self._leaves
        self._nodes[leaves] = weights
        self._changed.append(leaves)
        self._changes += len(leaves)
        if self._changes > max(self._leaves, LONGEST_LIST):
            self._add_up()

    def _add_up(self) -> None:
        """Make the sums right again: above changed leaves only, or everywhere when most changed."""
        if not self._changed:
            return
        changed = self._changed[0] if len(self._changed) == 1 else np.concatenate(self._changed)
        self._changed, self._changes = [], 0
        if len(changed) * 8 > self._leaves:
            half = self._leaves >> 1
            while half:
                np.add(self._left[half : 2 * half], self._right[half : 2 * half], out=self._nodes[half : 2 * half])
                half >>= 1
            return
        node = changed >> 1
        if len(node) > 1:
            node = np.unique(node) if np.any(node[1:] < node[:-1]) else _without_repeats(node)
        while node[0]:
            self._nodes[node] = self._left[node] + self._right[node]
            node = _without_repeats(node >> 1)

    def find(self, mass: Floats) -> Ints:
        """Slots [K] at `mass` [K] in [0, total): the first whose running sum exceeds it. Only for total > 0."""
        self._add_up()
        node = np.ones(len(mass), np.int64)
        rest = mass.copy()
        for _ in range(self._depth):
            left = self._left[node]
            right_side = (rest >= left) & (self._right[node] > 0.0)
            rest -= left * right_side
            node += node
            node += right_side
        return node - self._leaves


def _without_repeats(ordered: Ints) -> Ints:
    if len(ordered) == 1:
        return ordered
    keep = np.empty(len(ordered), np.bool_)
    keep[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]
