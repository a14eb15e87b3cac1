"""By order of arrival: the oldest item first, or the newest.

        head                                tail
         ▼                                   ▼
    ... [7][3][ ][9][ ][ ][4][1][8][2][5][6] ...      a ring of slots; removed ones leave gaps

Places count up for ever and are taken modulo the ring. Gaps at the ends are forgotten as they are met; the others are closed when the
ring is full, or when a search had to step over many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.selectors.protocol import Counts, Floats, Ints, Selection

__all__ = ["ArrivalSelector"]

FIRST_LOOK = 64
MANY_GAPS = 4_096


class ArrivalSelector:
    """Names the oldest, or the newest, members.

    Args:
        newest_first: Lifo rather than Fifo.
    """

    def __init__(self, capacity: int, *, newest_first: bool) -> None:
        self._newest_first = newest_first
        self._ring = np.zeros(capacity + capacity // 4 + FIRST_LOOK, np.int32)
        self._place = np.zeros(capacity, np.int32)  # in the ring, plus 1; 0: no member
        self._head = 0
        self._tail = 0
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
        """Members that come back, as their numbers tell, go to where Fifo and Lifo name them first: there they were."""
        if not len(slots):
            return
        if self._tail + len(slots) - self._head > len(self._ring):
            self._close_gaps()
        ascending = bool((numbers[1:] > numbers[:-1]).all())
        first_number, newest_number = (numbers[0], numbers[-1]) if ascending else (numbers.min(), numbers.max())
        comes_back = self._size > 0 and int(first_number) < self._newest_number
        if comes_back and not ascending:
            slots = slots[np.argsort(numbers)]
        if comes_back and not self._newest_first:
            self._head -= len(slots)
            places = np.arange(self._head, self._head + len(slots)) % len(self._ring)
        else:
            places = np.arange(self._tail, self._tail + len(slots)) % len(self._ring)
            self._tail += len(slots)
            self._by_age = self._by_age and not comes_back and ascending
        self._newest_number = max(self._newest_number, int(newest_number))
        self._ring[places] = slots
        self._place[slots] = places + 1
        self._size += len(slots)

    def remove(self, slots: Ints) -> None:
        if len(slots) and not self._newest_first and self._are_oldest(slots):
            self._head += len(slots)  # no gaps that a search would have to step over
        self._place[slots] = 0
        self._size -= len(slots)
        if self._size == 0:
            self._head = self._tail = 0

    def update(self, slots: Ints, priorities: Floats) -> None:
        return

    def advance(self, version: int) -> None:
        return

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
        if self._by_age:
            return None
        self._close_gaps()
        return self._ring[: self._size].astype(np.int64)

    def facts(self) -> dict[str, float]:
        return {}

    def resume(self, facts: Mapping[str, float]) -> None:
        return

    def _first(self, count: int) -> Ints:
        """The `count` members that the rule names first; fewer when there are no more."""
        count = min(count, self._size)
        if not count:
            return np.zeros(0, np.int64)
        if not self._newest_first:
            head = self._head % len(self._ring)
            oldest = self._ring[head : head + count]
            if len(oldest) == count and self._are_oldest(oldest):
                return oldest.astype(np.int64)
        found: list[Ints] = []
        missing, look, stepped_over = count, max(FIRST_LOOK, count + count // 2), 0
        at_end = True  # no member was met yet: gaps here are never looked at again
        begin = self._tail if self._newest_first else self._head
        while missing > 0:
            if self._newest_first:
                end = max(self._head, begin - look)
                places = np.arange(begin - 1, end - 1, -1) % len(self._ring)
            else:
                end = min(self._tail, begin + look)
                places = np.arange(begin, end) % len(self._ring)
            slots = self._ring[places].astype(np.int64)
            alive = np.flatnonzero(self._place[slots] == places + 1)
            if at_end:
                forgotten = int(alive[0]) if len(alive) else len(places)
                self._forget(forgotten)
                stepped_over -= forgotten
                at_end = not len(alive)
            part = slots[alive[:missing]]
            found.append(part)
            missing -= len(part)
            stepped_over += len(places) - len(alive)
            begin, look = end, 2 * look
        if stepped_over > MANY_GAPS:
            self._close_gaps()
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _are_oldest(self, slots: npt.NDArray[Any]) -> bool:
        """Whether `slots` stand at the head in this order, without a gap."""
        first = self._head % len(self._ring) + 1
        if self._place[slots[0]] != first or self._place[slots[-1]] != first + len(slots) - 1:
            return False
        return bool((self._place[slots] == np.arange(first, first + len(slots), dtype=np.int32)).all())

    def _forget(self, gaps: int) -> None:
        if self._newest_first:
            self._tail -= gaps
        else:
            self._head += gaps

    def _close_gaps(self) -> None:
        places = np.arange(self._head, self._tail) % len(self._ring)
        slots = self._ring[places]
        slots = slots[self._place[slots] == places + 1]
        self._ring[: len(slots)] = slots
        self._place[slots] = np.arange(1, len(slots) + 1, dtype=np.int32)
        self._head, self._tail = 0, len(slots)
