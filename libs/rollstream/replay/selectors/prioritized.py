"""By priority: the more surprising, the more often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.selectors.protocol import Counts, Floats, Ints, Selection
from rollstream.replay.selectors.weighted_slots import WeightedSlots

__all__ = ["PrioritizedSelector", "weights_of"]

SMALLEST = 1e-140
"""Weight of a priority whose power is smaller: over the highest sum of weights it still is a double above 0."""


def weights_of(priorities: Floats, *, exponent: float) -> Floats:
    """priority ** exponent; 0 stays 0 also when the exponent is 0, and nothing else becomes 0."""
    weights: Floats = np.power(priorities, exponent)
    return np.where(priorities > 0.0, np.maximum(weights, SMALLEST), 0.0)


class PrioritizedSelector:
    """Draws in proportion to priority ** exponent."""

    def __init__(self, capacity: int, *, exponent: float, stratified: bool = False) -> None:
        self._exponent = exponent
        self._weighted = WeightedSlots(capacity, stratified=stratified)

    @property
    def sampleable(self) -> int:
        return self._weighted.sampleable

    @property
    def mass(self) -> float:
        return max(self._weighted.total, self._weighted.least_mass)

    @property
    def min_probability(self) -> float:
        return self._weighted.min_probability

    def insert(self, slots: Ints, priorities: Floats, *, numbers: Ints, versions: Counts) -> None:
        self._weighted.insert(slots, weights_of(priorities, exponent=self._exponent))

    def remove(self, slots: Ints) -> None:
        self._weighted.remove(slots)

    def update(self, slots: Ints, priorities: Floats) -> None:
        self._weighted.update(slots, weights_of(priorities, exponent=self._exponent))

    def advance(self, version: int) -> None:
        return

    def probability(self, slots: Ints) -> Floats:
        return self._weighted.probability(slots)

    def select(self, count: int, *, generator: np.random.Generator, uses_left: npt.NDArray[Any] | None) -> Selection:
        return self._weighted.draw(count, generator=generator)

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        return self._weighted.draw_distinct(count, generator=generator)

    def order(self) -> Ints | None:
        return None

    def facts(self) -> dict[str, float]:
        return {"high": float(self._weighted.members.high)}

    def resume(self, facts: Mapping[str, float]) -> None:
        members = self._weighted.members
        members.high = max(members.high, int(facts.get("high", 0)))
