"""A tree of fan-out 8 over an array: every node combines its eight children. Written in batches, brought up to date when asked.

    level 0   leaves, one by slot        | | | | | | | |  | | | | | | | |  ...
    level 1   eight leaves each                 *                *         ...
    top       at most 4096 nodes, looked at as a whole

Eight doubles are one cache line, so a step down costs one miss; wider nodes need more arithmetic, narrower ones more steps (both
measured). Writing marks leaves; nodes are combined when they are next asked for, so a slot that is emptied and filled between two
samples costs one way up. Nodes are never adjusted by differences but combined anew from left to right: rounding errors cannot
accumulate, and the same leaves give the same nodes whatever happened before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FAN", "BlockTree", "padded"]

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]

FAN = 8
TOP_NODES = 4_096
"""The top is summed or searched as a whole; up to here that is cheaper than one more step down."""
LONGEST_LIST = 100_000
"""Changed leaves that are remembered at most, when nobody asks for a long time."""


def padded(capacity: int) -> int:
    """How many leaves a tree over `capacity` slots needs: whole nodes on every level."""
    span = FAN
    while -(-capacity // span) > TOP_NODES:
        span *= FAN
    return max(1, -(-capacity // span)) * span


class BlockTree:
    """Levels over `leaves`, which the owner writes and then reports as changed.

    Args:
        leaves: as many as `padded` says, zeros where nothing was written.
        combine: of two children, e.g. `np.add`.
        lift: what the tree sees of a leaf, when that is not the leaf itself.
        keeps_starts: whether to keep, for every node between leaves and top, what its elder siblings combine to.
    """

    def __init__(
        self,
        leaves: Numbers,
        combine: np.ufunc,
        *,
        lift: Callable[[Numbers], Numbers] | None = None,
        keeps_starts: bool = False,
    ) -> None:
        self._combine = combine
        self._lift = lift
        self.levels = [leaves]
        while len(self.levels[-1]) > TOP_NODES:
            self.levels.append(np.zeros(len(self.levels[-1]) // FAN, leaves.dtype))
        self.lanes = [_lanes(level) for level in self.levels]
        """For each level and lane j, the view in which the place of a node's first child leads to its child j."""
        self.starts = [_lanes(np.zeros_like(level)) for level in self.levels[1:-1]] if keeps_starts else []
        """For each level from 1 to below the top, in the same form: what the elder siblings of a child combine to."""
        self._changed: list[Ints] = []
        self._changes = 0

    def touch(self, slots: Ints) -> bool:
        """Leaves at `slots` were written; whether so many are that `settle` should be called now."""
        self._changed.append(slots)
        self._changes += len(slots)
        return self._changes > max(len(self.levels[0]), LONGEST_LIST)

    def settle(self, *, companion: BlockTree | None = None) -> bool:
        """Make all nodes right again; whether there was anything to do.

        Args:
            companion: a tree over the same leaves, which is made right at the same places.
        """
        if not self._changed:
            return False
        trees = (self,) if companion is None else (self, companion)
        changed = self._changed[0] if len(self._changed) == 1 else np.concatenate(self._changed)
        self._changed, self._changes = [], 0
        if len(changed) * FAN > len(self.levels[0]):
            for tree in trees:
                tree.combine_all()
            return True
        node = changed
        for below in range(len(self.levels) - 1):
            node = _distinct(node // FAN)
            for tree in trees:
                tree.levels[below + 1][node] = tree._combined(below, node * FAN)
        return True

    def combine_all(self) -> None:
        """Combine every node from the leaves up."""
        for below, level in enumerate(self.levels[1:]):
            level[:] = self._combined(below, slice(None, None, FAN))

    def _combined(self, below: int, first_child: Any) -> Numbers:
        """What the children at `first_child` (places, or a slice) of level `below` and their siblings combine to."""
        lift = self._lift if below == 0 else None
        starts = self.starts[below - 1] if below and self.starts else None
        result: Numbers = np.array(())
        for lane, view in enumerate(self.lanes[below]):
            child = view[first_child] if lift is None else lift(view[first_child])
            if lane == 0:
                result = child.copy() if isinstance(first_child, slice) else child
                continue
            if starts is not None:
                starts[lane][first_child] = result
            self._combine(result, child, out=result)
        return result


def _lanes(level: Numbers) -> list[Numbers]:
    return [level[lane:] for lane in range(FAN)]


def _distinct(values: Ints) -> Ints:
    """The different values in ascending order."""
    if len(values) == 1:
        return values
    if (values[1:] < values[:-1]).any():
        values = np.sort(values)
    keep = np.empty(len(values), np.bool_)
    keep[0] = True
    np.not_equal(values[1:], values[:-1], out=keep[1:])
    return values[keep]
