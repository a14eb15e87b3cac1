"""Selectors: which items are sampled, and which are removed from a full table. All work on batches of slots.

`select` draws with replacement, as one after another would; `select_distinct` draws without, for removal. Anything that fulfils
the `Selector` protocol can stand on either side, so a new rule is one class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rollstream.replay import selector_spec as spec
from rollstream.replay.sum_tree import SumTree

__all__ = ["FifoSelector", "PrioritizedSelector", "Selection", "Selector", "UniformSelector", "make_selector"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Chosen slots [K] and the probability [K] with which each was chosen."""

    slots: Ints
    probability: Floats


class Selector(Protocol):
    """A rule over a changing set of slots. Slots in one call of insert, remove or update are distinct."""

    def insert(self, slots: Ints, priorities: Floats) -> None: ...

    def remove(self, slots: Ints) -> None: ...

    def update(self, slots: Ints, priorities: Floats) -> None: ...

    @property
    def sampleable(self) -> int:
        """Items that can be drawn now: N of importance weights."""
        ...

    def order(self) -> Ints | None:
        """Slots in the order in which inserting them anew gives the same future draws; None where any order does."""
        ...

    def select(self, count: int, *, generator: np.random.Generator, uses_left: Ints | None) -> Selection:
        """Draw `count` slots with replacement from a set that is not empty.

        Args:
            uses_left: by slot, how often an item may still be drawn; only rules that always name the same item look at it, and
                they may return fewer than `count`.
        """
        ...

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        """Draw `count` different slots, as if each left the set once drawn; `count` is at most the size of the set."""
        ...


def make_selector(rule: spec.Uniform | spec.Fifo | spec.Prioritized, *, capacity: int) -> Selector:
    """An empty selector for slots 0..capacity-1."""
    match rule:
        case spec.Uniform():
            return UniformSelector(capacity)
        case spec.Fifo():
            return FifoSelector(capacity)
        case spec.Prioritized():
            return PrioritizedSelector(capacity, exponent=rule.exponent)


class UniformSelector:
    """A dense list of slots; a removed one is replaced by one from the end."""

    def __init__(self, capacity: int) -> None:
        self._dense = np.zeros(capacity, np.int64)
        self._place = np.zeros(capacity, np.int64)
        self._size = 0

    @property
    def sampleable(self) -> int:
        return self._size

    def order(self) -> Ints | None:
        return self._dense[: self._size]

    def insert(self, slots: Ints, priorities: Floats) -> None:
        end = self._size + len(slots)
        self._dense[self._size : end] = slots
        self._place[slots] = np.arange(self._size, end)
        self._size = end

    def remove(self, slots: Ints) -> None:
        end = self._size - len(slots)
        places = self._place[slots]
        tail_stays = np.ones(len(slots), np.bool_)
        tail_stays[places[places >= end] - end] = False
        movers = self._dense[end : self._size][tail_stays]
        holes = places[places < end]
        self._dense[holes] = movers
        self._place[movers] = holes
        self._size = end

    def update(self, slots: Ints, priorities: Floats) -> None:
        return

    def select(self, count: int, *, generator: np.random.Generator, uses_left: Ints | None) -> Selection:
        slots = self._dense[generator.integers(0, self._size, count)]
        return Selection(slots=slots, probability=np.full(count, 1.0 / self._size))

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        if count * 4 > self._size:
            return self._dense[generator.permutation(self._size)[:count]]
        return _distinct(lambda more: self._dense[generator.integers(0, self._size, more)], count)


class FifoSelector:
    """A ring of slots in order of insertion; removed slots leave gaps, which are closed when the ring is full."""

    def __init__(self, capacity: int) -> None:
        self._ring = np.zeros(1 << (2 * capacity - 1).bit_length(), np.int64)
        self._mask = len(self._ring) - 1
        self._place = np.full(capacity, -1, np.int64)
        self._head = 0
        self._tail = 0
        self._size = 0

    @property
    def sampleable(self) -> int:
        return self._size

    def order(self) -> Ints | None:
        return None  # by age, which is how tables insert

    def insert(self, slots: Ints, priorities: Floats) -> None:
        if self._tail + len(slots) - self._head > len(self._ring):
            self._close_gaps()
        places = np.arange(self._tail, self._tail + len(slots))
        self._ring[places & self._mask] = slots
        self._place[slots] = places
        self._tail += len(slots)
        self._size += len(slots)

    def remove(self, slots: Ints) -> None:
        self._place[slots] = -1
        self._size -= len(slots)

    def update(self, slots: Ints, priorities: Floats) -> None:
        return

    def select(self, count: int, *, generator: np.random.Generator, uses_left: Ints | None) -> Selection:
        if uses_left is None:
            return Selection(slots=np.repeat(self._oldest(1), count), probability=np.ones(count))
        oldest = self._oldest(min(count, self._size))
        slots = np.repeat(oldest, np.minimum(uses_left[oldest], count))[:count]
        return Selection(slots=slots, probability=np.ones(len(slots)))

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        return self._oldest(count)

    def _oldest(self, count: int) -> Ints:
        found: list[Ints] = []
        missing, at = count, self._head
        while missing > 0:
            places = np.arange(at, min(self._tail, at + max(64, 2 * missing)))
            slots = self._ring[places & self._mask]
            alive = self._place[slots] == places
            if at == self._head:
                first = int(np.argmax(alive))
                self._head += first if alive[first] else len(places)
            at += len(places)
            part = slots[alive][:missing]
            found.append(part)
            missing -= len(part)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _close_gaps(self) -> None:
        places = np.arange(self._head, self._tail)
        slots = self._ring[places & self._mask]
        slots = slots[self._place[slots] == places]
        self._ring[: len(slots)] = slots
        self._place[slots] = np.arange(len(slots))
        self._head, self._tail = 0, len(slots)


class PrioritizedSelector:
    """A sum tree over priority ** exponent. Weight 0 is never drawn while another weight is above 0."""

    def __init__(self, capacity: int, *, exponent: float) -> None:
        self._exponent = exponent
        self._tree = SumTree(capacity)
        self._member = np.zeros(capacity, np.bool_)
        self._size = 0
        self._positive = 0

    @property
    def sampleable(self) -> int:
        return self._positive or self._size

    def order(self) -> Ints | None:
        return None  # draws depend on slots alone

    def insert(self, slots: Ints, priorities: Floats) -> None:
        self._member[slots] = True
        self._size += len(slots)
        self._write(slots, self._weights(priorities), before=0)

    def remove(self, slots: Ints) -> None:
        before = int(np.count_nonzero(self._tree.get(slots)))
        self._member[slots] = False
        self._size -= len(slots)
        self._write(slots, np.zeros(len(slots)), before=before)

    def update(self, slots: Ints, priorities: Floats) -> None:
        before = int(np.count_nonzero(self._tree.get(slots)))
        self._write(slots, self._weights(priorities), before=before)

    def select(self, count: int, *, generator: np.random.Generator, uses_left: Ints | None) -> Selection:
        total = self._tree.total
        if total <= 0.0:
            members = np.flatnonzero(self._member)
            slots = members[generator.integers(0, len(members), count)]
            return Selection(slots=slots, probability=np.full(count, 1.0 / len(members)))
        slots = self._tree.find(generator.random(count) * total)
        return Selection(slots=slots, probability=self._tree.get(slots) / total)

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        # Exponential clocks: the k largest of log(u) / w are a draw without replacement by weight, whatever the weights are.
        members = np.flatnonzero(self._member)
        weights = self._tree.get(members)
        arrival = np.full(len(members), np.inf)
        positive = weights > 0.0
        arrival[positive] = generator.exponential(size=int(positive.sum())) / weights[positive]
        rest = generator.random(len(members))
        return members[np.lexsort((rest, arrival))[:count]]

    def _weights(self, priorities: Floats) -> Floats:
        weights = np.power(priorities, self._exponent)
        weights[priorities == 0.0] = 0.0
        return weights

    def _write(self, slots: Ints, weights: Floats, *, before: int) -> None:
        self._positive += int(np.count_nonzero(weights)) - before
        self._tree.set(slots, weights)


def _distinct(draw: _Draw, count: int) -> Ints:
    """The first `count` different values of repeated draws, in order of appearance."""
    slots = draw(count + count // 2 + 8)
    while True:
        _, first = np.unique(slots, return_index=True)
        if len(first) >= count:
            first.sort()
            return slots[first[:count]]
        slots = np.concatenate([slots, draw(count)])


class _Draw(Protocol):
    def __call__(self, count: int, /) -> Ints: ...
