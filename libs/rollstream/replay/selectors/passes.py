"""Without replacement: random order, no item twice before all came once. New items join the pass that is under way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.selectors.protocol import Counts, Floats, Ints, Selection
from rollstream.replay.selectors.slot_set import DenseSet

__all__ = ["PassSelector"]


class PassSelector:
    """Two lists: members still to come in this pass, and those that came. When the first is empty they change places.

    Every member comes once a pass, so its probability, as importance weights want it, is 1 / size, however far the pass is.
    """

    def __init__(self, capacity: int) -> None:
        place = np.zeros(capacity, np.int32)
        self._came = np.zeros(capacity, np.bool_)
        self._waiting = DenseSet(capacity, place=place)
        self._done = DenseSet(capacity, place=place)

    @property
    def sampleable(self) -> int:
        return self._waiting.size + self._done.size

    @property
    def mass(self) -> float:
        return float(self.sampleable)

    @property
    def min_probability(self) -> float:
        return 1.0 / max(1, self.sampleable)

    def insert(self, slots: Ints, priorities: Floats, *, numbers: Ints, versions: Counts) -> None:
        self._came[slots] = False
        self._waiting.add(slots)

    def remove(self, slots: Ints) -> None:
        came = self._came[slots]
        self._done.remove(slots[came])
        self._waiting.remove(slots[~came])

    def update(self, slots: Ints, priorities: Floats) -> None:
        return

    def advance(self, version: int) -> None:
        return

    def probability(self, slots: Ints) -> Floats:
        return np.full(len(slots), self.min_probability)

    def select(self, count: int, *, generator: np.random.Generator, uses_left: npt.NDArray[Any] | None) -> Selection:
        parts: list[Ints] = []
        missing = count
        while missing:
            if not self._waiting.size:
                self._begin_pass()
            part = self._waiting.draw_distinct(min(missing, self._waiting.size), generator=generator)
            self._waiting.remove(part)
            self._done.add(part)
            self._came[part] = True
            parts.append(part)
            missing -= len(part)
        slots = parts[0] if len(parts) == 1 else np.concatenate([*parts, np.zeros(0, np.int64)])
        return Selection(slots=slots, probability=self.probability(slots))

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        """Names who would come next; who leaves is removed by the caller, who stays still waits for its turn."""
        waiting = min(count, self._waiting.size)
        first = self._waiting.draw_distinct(waiting, generator=generator)
        if waiting == count:
            return first
        return np.concatenate([first, self._done.draw_distinct(count - waiting, generator=generator)])

    def _begin_pass(self) -> None:
        self._came[self._done.members()] = False
        self._waiting, self._done = self._done, self._waiting

    def order(self) -> Ints | None:
        return np.concatenate([self._waiting.members(), self._done.members()])

    def facts(self) -> dict[str, float]:
        return {"waiting": float(self._waiting.size)}

    def resume(self, facts: Mapping[str, float]) -> None:
        came = self._waiting.members()[int(facts.get("waiting", self._waiting.size)) :]
        self._waiting.remove(came)
        self._done.add(came)
        self._came[came] = True
