"""Every item with the same probability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.selectors.protocol import Counts, Floats, Ints, Selection
from rollstream.replay.selectors.slot_set import SlotSet

__all__ = ["UniformSelector"]


class UniformSelector:
    """A set of flags, one byte a slot."""

    def __init__(self, capacity: int) -> None:
        self._members = SlotSet(capacity)

    @property
    def sampleable(self) -> int:
        return self._members.size

    @property
    def mass(self) -> float:
        return float(self._members.size)

    @property
    def min_probability(self) -> float:
        return 1.0 / max(1, self._members.size)

    def insert(self, slots: Ints, priorities: Floats, *, numbers: Ints, versions: Counts) -> None:
        self._members.add(slots)

    def remove(self, slots: Ints) -> None:
        self._members.remove(slots)

    def update(self, slots: Ints, priorities: Floats) -> None:
        return

    def advance(self, version: int) -> None:
        return

    def probability(self, slots: Ints) -> Floats:
        return np.full(len(slots), self.min_probability)

    def select(self, count: int, *, generator: np.random.Generator, uses_left: npt.NDArray[Any] | None) -> Selection:
        slots = self._members.draw(count, generator=generator)
        return Selection(slots=slots, probability=self.probability(slots))

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        return self._members.draw_distinct(count, generator=generator)

    def order(self) -> Ints | None:
        return None

    def facts(self) -> dict[str, float]:
        return {"high": float(self._members.high)}

    def resume(self, facts: Mapping[str, float]) -> None:
        self._members.high = max(self._members.high, int(facts.get("high", 0)))
