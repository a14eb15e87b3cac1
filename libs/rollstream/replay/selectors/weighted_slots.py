"""A set of slots with weights, from which slots are drawn in proportion: the machine behind all selectors that weigh.

Weight 0 is never drawn while another weight is above 0; when all are 0, members are drawn uniformly.
"""

from __future__ import annotations

import numpy as np

from rollstream.replay.selectors.protocol import Floats, Ints, Selection
from rollstream.replay.selectors.slot_set import SlotSet
from rollstream.replay.sum_tree import SumTree

__all__ = ["WeightedSlots"]

ROUNDS = 8
"""How often distinct draws are tried through the tree; where a few weights are most of the sum, listing all is cheaper."""

WEIGHTLESS = 1e-250
"""Mass of a member whose weight is 0 while all others' are."""


class WeightedSlots:
    """Members, their weights and the draws from them.

    Args:
        stratified: whether a batch of k draws takes one of each k-th of the total weight.
    """

    def __init__(self, capacity: int, *, stratified: bool = False) -> None:
        self._stratified = stratified
        self._tree = SumTree(capacity)
        self.members = SlotSet(capacity)
        self._positive = 0

    @property
    def sampleable(self) -> int:
        return self._positive or self.members.size

    @property
    def total(self) -> float:
        return self._tree.total

    @property
    def least_mass(self) -> float:
        """What the mass is when no weight tells: so little that the shard is drawn from only when all others have no weight either,
        and then in proportion to its members."""
        return self.members.size * WEIGHTLESS

    @property
    def min_probability(self) -> float:
        total = self._tree.total
        return min(1.0, self._tree.least / total) if total > 0.0 else 1.0 / max(1, self.members.size)

    def insert(self, slots: Ints, weights: Floats) -> None:
        self.members.add(slots)
        self._write(slots, weights, before=0)

    def remove(self, slots: Ints) -> None:
        before = int(np.count_nonzero(self._tree.get(slots)))
        self.members.remove(slots)
        self._write(slots, np.zeros(len(slots)), before=before)

    def update(self, slots: Ints, weights: Floats) -> None:
        self._write(slots, weights, before=int(np.count_nonzero(self._tree.get(slots))))

    def scale(self, factor: float, *, floor: float) -> None:
        """Multiply every weight; none above 0 falls below `floor`."""
        self._tree.scale(factor, floor=floor)

    def _write(self, slots: Ints, weights: Floats, *, before: int) -> None:
        self._positive += int(np.count_nonzero(weights)) - before
        self._tree.set(slots, weights)

    def probability(self, slots: Ints) -> Floats:
        total = self._tree.total
        return self._tree.get(slots) / total if total > 0.0 else np.full(len(slots), 1.0 / max(1, self.members.size))

    def draw(self, count: int, *, generator: np.random.Generator) -> Selection:
        """`count` slots with replacement, and with which probability each."""
        total = self._tree.total
        if total <= 0.0:
            slots = self.members.draw(count, generator=generator)
            return Selection(slots=slots, probability=np.full(count, 1.0 / self.members.size))
        mass = generator.random(count)
        if self._stratified:
            # In random order, so that a part of the batch is not a part of the table.
            mass += generator.permutation(count)
            mass /= count
        mass *= total
        slots = self._tree.find(mass)
        return Selection(slots=slots, probability=self._tree.get(slots) / total)

    def draw_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        """`count` different slots, as if each left the set once drawn: draws with replacement, leaving out what came before.

        Where few slots have most of the weight, such draws repeat themselves; so those that were found are taken out of the tree
        between rounds, and put back at the end.
        """
        weighed = min(count, self._positive)
        found = np.zeros(0, np.int64)
        taken: list[Floats] = []
        for _ in range(ROUNDS):
            missing = weighed - len(found)
            total = self._tree.total
            if missing <= 0 or total <= 0.0:
                break
            drawn = self._tree.find(generator.random(missing + missing // 16 + 2) * total)
            _, first = np.unique(drawn, return_index=True)
            first.sort()
            fresh = drawn[first[:missing]]
            found = np.concatenate([found, fresh])
            if len(found) < weighed:
                taken.append(self._tree.get(fresh))
                self._tree.set(fresh, np.zeros(len(fresh)))
        if len(found) < weighed:
            found = np.concatenate([found, self._by_arrival(weighed - len(found), generator=generator)])
        if taken:
            weights = np.concatenate(taken)
            self._tree.set(found[: len(weights)], weights)
        return found if weighed == count else np.concatenate([found, self._weightless(count - weighed, generator=generator)])

    def _by_arrival(self, count: int, *, generator: np.random.Generator) -> Ints:
        """Exponential clocks: the first `count` of arrivals at rate w are a draw without replacement by weight, whatever the weights."""
        slots = self.members.members()
        weights = self._tree.get(slots)
        slots, weights = slots[weights > 0.0], weights[weights > 0.0]
        with np.errstate(over="ignore"):
            arrival = generator.exponential(size=len(slots)) / weights
        return slots[np.argsort(arrival, kind="stable")[:count]]

    def _weightless(self, count: int, *, generator: np.random.Generator) -> Ints:
        """Members of weight 0, uniformly: they go when all others are gone."""
        if not self._positive:
            return self.members.draw_distinct(count, generator=generator)
        slots = self.members.members()
        return generator.permutation(slots[self._tree.get(slots) == 0.0])[:count]
