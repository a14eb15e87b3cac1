"""Sets of slots from which one is drawn uniformly: two forms, for sets that fill their range and for those that need not.

`SlotSet` needs one byte a slot: it draws places until they are members, which costs little as long as most slots up to the highest
are taken, as they are in a table. `DenseSet` needs eight bytes and draws at once whatever is taken.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rollstream.replay.selectors.protocol import Ints

__all__ = ["DenseSet", "SlotSet", "first_distinct"]

SPARSE = 64
"""Of how many places one must be a member for drawing places to be cheaper than listing the members."""


class SlotSet:
    """A set of slots as flags."""

    def __init__(self, capacity: int) -> None:
        self.has = np.zeros(capacity, np.bool_)
        self.size = 0
        self.high = 0
        """One above the highest slot that was ever a member."""
        self._listed: Ints | None = None

    def add(self, slots: Ints) -> None:
        self.has[slots] = True
        self.size += len(slots)
        if len(slots):
            self.high = max(self.high, int(slots.max()) + 1)
        self._listed = None

    def remove(self, slots: Ints) -> None:
        self.has[slots] = False
        self.size -= len(slots)
        self._listed = None

    def members(self) -> Ints:
        """All members in ascending order."""
        if self._listed is None:
            self._listed = np.flatnonzero(self.has[: self.high])
        return self._listed

    def draw(self, count: int, *, generator: np.random.Generator) -> Ints:
        """`count` members with replacement; only for a set that is not empty."""
        if self.size == self.high:
            return generator.integers(0, self.high, count)
        if self.size * SPARSE < self.high:
            return self.members()[generator.integers(0, self.size, count)]
        found = generator.integers(0, self.high, count)
        found = found[self.has[found]]
        while len(found) < count:
            more = generator.integers(0, self.high, (count - len(found)) * self.high // self.size + 8)
            found = np.concatenate([found, more[self.has[more]]])[:count]
        return found

    def draw_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        """`count` different members in random order."""
        if count * 4 >= self.size:
            return generator.permutation(self.members())[:count]
        return first_distinct(lambda more: self.draw(more, generator=generator), count)


class DenseSet:
    """A set of slots as a list; a removed one is replaced by one from the end.

    Args:
        place: where each slot stands in the list; sets that have no slot in common may share it.
    """

    def __init__(self, capacity: int, *, place: npt.NDArray[np.int32]) -> None:
        self._dense = np.zeros(capacity, np.int32)
        self._place = place
        self.size = 0

    def members(self) -> Ints:
        """All members as they stand."""
        return self._dense[: self.size].astype(np.int64)

    def add(self, slots: Ints) -> None:
        end = self.size + len(slots)
        self._dense[self.size : end] = slots
        self._place[slots] = np.arange(self.size, end, dtype=np.int32)
        self.size = end

    def remove(self, slots: Ints) -> None:
        end = self.size - len(slots)
        places = self._place[slots]
        tail_stays = np.ones(len(slots), np.bool_)
        tail_stays[places[places >= end] - end] = False
        movers = self._dense[end : self.size][tail_stays]
        holes = places[places < end]
        self._dense[holes] = movers
        self._place[movers] = holes
        self.size = end

    def draw_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        """`count` different members in random order."""
        places = generator.choice(self.size, count, replace=False)
        return self._dense[places].astype(np.int64)


def first_distinct(draw: Callable[[int], Ints], count: int) -> Ints:
    """The first `count` different values of repeated draws, in order of appearance; there must be so many."""
    slots = draw(count + count // 16 + 2)
    while True:
        _, first = np.unique(slots, return_index=True)
        if len(first) >= count:
            first.sort()
            return slots[first[:count]]
        slots = np.concatenate([slots, draw(count)])
