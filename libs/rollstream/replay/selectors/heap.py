"""By order of priority: the lowest first, or the highest; of equal ones that which was inserted or updated least recently.

Each member has one number that says its rank, and a tree of maxima finds the highest numbers:

    rank u8 = priority as float32, its bits (or, for the lowest first, their complement) | how long ago it was last written (32 bits)

The k highest stand below the k highest nodes of each level, so they are found in a few partial sorts, whatever the size of the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.block_tree import FAN, BlockTree, padded
from rollstream.replay.selectors.protocol import Counts, Floats, Ints, Selection

__all__ = ["HeapSelector"]

LOW = np.uint64(0xFFFF_FFFF)
HALF = np.uint64(32)
LAST_WRITE = 0xFFFF_FFFE
"""Writes are numbered up to here, then anew; the rank of a member is never 0, which means none."""


class HeapSelector:
    """Names the members of highest, or lowest, priority.

    Args:
        highest_first: MaxHeap rather than MinHeap.
    """

    def __init__(self, capacity: int, *, highest_first: bool, last_write: int = LAST_WRITE) -> None:
        self._highest_first = highest_first
        self._last_write = last_write
        self._rank: npt.NDArray[np.uint64] = np.zeros(padded(capacity), np.uint64)
        self._tree = BlockTree(self._rank, np.maximum)
        self._writes = 0
        self._size = 0
        self._newest_number = -1
        self._by_age = True

    @property
    def sampleable(self) -> int:
        return self._size

    @property
    def mass(self) -> float:
        return float(self._size)

    @property
    def min_probability(self) -> float:
        return 1.0

    def insert(self, slots: Ints, priorities: Floats, *, numbers: Ints, versions: Counts) -> None:
        if not len(slots):
            return
        in_line = int(numbers[0]) > self._newest_number and bool((numbers[1:] > numbers[:-1]).all())
        self._by_age = self._by_age and in_line
        self._newest_number = max(self._newest_number, int(numbers.max()))
        self._size += len(slots)
        self._write(slots, priorities)

    def remove(self, slots: Ints) -> None:
        self._size -= len(slots)
        self._rank[slots] = 0
        self._touch(slots)

    def update(self, slots: Ints, priorities: Floats) -> None:
        self._by_age = self._by_age and not len(slots)
        self._write(slots, priorities)

    def advance(self, version: int) -> None:
        return

    def _write(self, slots: Ints, priorities: Floats) -> None:
        if self._writes + len(slots) > self._last_write:
            self._number_writes_anew()
        bits = (priorities + 0.0).astype(np.float32).view(np.uint32).astype(np.uint64)  # + 0.0: there is a -0.0
        ago = LOW - np.arange(self._writes, self._writes + len(slots), dtype=np.uint64)
        self._rank[slots] = ((bits if self._highest_first else LOW - bits) << HALF) | ago
        self._writes += len(slots)
        self._touch(slots)

    def _touch(self, slots: Ints) -> None:
        if self._tree.touch(slots):
            self._tree.settle()

    def _number_writes_anew(self) -> None:
        slots = self._by_write()
        ago = LOW - np.arange(len(slots), dtype=np.uint64)
        self._rank[slots] = (self._rank[slots] & ~LOW) | ago
        self._writes = len(slots)  # ranks keep their order, but not their values
        self._touch(slots)

    def _by_write(self) -> Ints:
        """Members, least recently written first."""
        slots = np.flatnonzero(self._rank)
        return slots[np.argsort(LOW - (self._rank[slots] & LOW))]

    def probability(self, slots: Ints) -> Floats:
        first = self._first(1)
        return (slots == first[0]).astype(np.float64) if len(first) else np.zeros(len(slots))

    def select(self, count: int, *, generator: np.random.Generator, uses_left: npt.NDArray[Any] | None) -> Selection:
        if uses_left is None:
            return Selection(slots=np.repeat(self._first(1), count), probability=np.ones(count))
        first = self._first(min(count, self._size))
        slots = np.repeat(first, np.minimum(uses_left[first], count))[:count]
        return Selection(slots=slots, probability=np.ones(len(slots)))

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        return self._first(count)

    def order(self) -> Ints | None:
        return None if self._by_age else self._by_write()

    def facts(self) -> dict[str, float]:
        return {}

    def resume(self, facts: Mapping[str, float]) -> None:
        return

    def _first(self, count: int) -> Ints:
        """The `count` members of highest rank, the highest first; fewer when there are no more."""
        count = min(count, self._size)
        if not count:
            return np.zeros(0, np.int64)
        self._tree.settle()
        levels = self._tree.levels
        nodes = _highest(levels[-1], count)
        for level in levels[-2::-1]:
            children = (nodes[:, np.newaxis] * FAN + np.arange(FAN)).reshape(-1)
            nodes = children[_highest(level.take(children), count)]
        return nodes[np.argsort(self._rank[nodes])[::-1]]


def _highest(ranks: npt.NDArray[np.uint64], count: int) -> Ints:
    """Places of the `count` highest, in any order."""
    if count >= len(ranks):
        return np.arange(len(ranks))
    if count == 1:
        return np.array([ranks.argmax()])
    return np.argpartition(ranks, len(ranks) - count)[len(ranks) - count :]
