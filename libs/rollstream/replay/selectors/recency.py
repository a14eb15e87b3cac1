"""By age: weights 0.5 ** (age / half_life), where age counts newer items, or versions of the weights (lag).

A weight is stored as 2 ** (birth / half_life) relative to a reference that is the same for all, so that nothing needs to be
rewritten as items grow older. Before the newest weights would overflow, the reference moves by a power of two, exactly; what is
hundreds of half-lives old then stays at the smallest weight: hardly ever drawn, but never lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.selectors.prioritized import weights_of
from rollstream.replay.selectors.protocol import Counts, Floats, Ints, Selection
from rollstream.replay.selectors.weighted_slots import WeightedSlots

__all__ = ["LagWeightedSelector", "RecencySelector"]

SPAN = 256
"""By which power of two the reference moves; 2 ** 256 times the highest priority ** exponent, 1e154, is a double."""
LOWEST = -220
"""Power of two of the smallest weight: over the highest sum of weights it still is a double above 0."""


class _Decay:
    """Weights by birth, a number that grows, and the newest birth of all."""

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._span = 0
        self.newest = 0

    def weights(self, births: Counts) -> Floats:
        """For items born at `births` [K], relative to the reference."""
        halves = births / self._half_life
        whole = np.floor(halves)
        power = np.maximum(whole - SPAN * self._span, LOWEST).astype(np.int64)
        weights: Floats = np.ldexp(np.exp2(halves - whole), power)
        return weights

    def grow(self, newest: int) -> int:
        """There is an item born at `newest`; by how many spans the reference moves, and all weights with it."""
        self.newest = max(self.newest, newest)
        spans = max(self._span, int(newest / self._half_life) // SPAN)
        moved, self._span = spans - self._span, spans
        return moved

    def scale(self) -> float:
        """What a weight relative to the reference must be multiplied by to be relative to the newest birth."""
        power = SPAN * self._span - self.newest / self._half_life
        return float(np.exp2(max(power, -1_000.0)))


class _Decaying:
    """Weighted slots whose weights decay: what both selectors share."""

    def __init__(self, capacity: int, *, half_life: float) -> None:
        self.decay = _Decay(half_life)
        self.slots = WeightedSlots(capacity)

    def grow(self, births: Counts) -> None:
        """Items born at `births` [K] are about to come: move the reference where it must."""
        if len(births) and (moved := self.decay.grow(int(births.max()))):
            self.slots.scale(np.ldexp(1.0, -SPAN * min(moved, 8)), floor=np.ldexp(1.0, LOWEST))

    @property
    def mass(self) -> float:
        return max(self.slots.total * self.decay.scale(), self.slots.least_mass)

    def facts(self) -> dict[str, float]:
        return {"high": float(self.slots.members.high), "newest": float(self.decay.newest)}

    def resume(self, facts: Mapping[str, float]) -> None:
        self.slots.members.high = max(self.slots.members.high, int(facts.get("high", 0)))
        self.decay.newest = max(self.decay.newest, int(facts.get("newest", 0)))


class RecencySelector:
    """Draws newer items more often; priorities do not matter.

    Args:
        by_versions: whether age is counted in versions of the weights rather than in items.
    """

    def __init__(self, capacity: int, *, half_life: float, by_versions: bool = False) -> None:
        self._by_versions = by_versions
        self._decaying = _Decaying(capacity, half_life=half_life)

    @property
    def sampleable(self) -> int:
        return self._decaying.slots.sampleable

    @property
    def mass(self) -> float:
        return self._decaying.mass

    @property
    def min_probability(self) -> float:
        return self._decaying.slots.min_probability

    def insert(self, slots: Ints, priorities: Floats, *, numbers: Ints, versions: Counts) -> None:
        births = versions if self._by_versions else numbers
        self._decaying.grow(births)
        self._decaying.slots.insert(slots, self._decaying.decay.weights(births))

    def remove(self, slots: Ints) -> None:
        self._decaying.slots.remove(slots)

    def update(self, slots: Ints, priorities: Floats) -> None:
        return

    def advance(self, version: int) -> None:
        if self._by_versions:
            self._decaying.decay.newest = max(self._decaying.decay.newest, version)

    def probability(self, slots: Ints) -> Floats:
        return self._decaying.slots.probability(slots)

    def select(self, count: int, *, generator: np.random.Generator, uses_left: npt.NDArray[Any] | None) -> Selection:
        return self._decaying.slots.draw(count, generator=generator)

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        return self._decaying.slots.draw_distinct(count, generator=generator)

    def order(self) -> Ints | None:
        return None

    def facts(self) -> dict[str, float]:
        return self._decaying.facts()

    def resume(self, facts: Mapping[str, float]) -> None:
        self._decaying.resume(facts)


class LagWeightedSelector:
    """Draws in proportion to priority ** exponent, halved for every `half_life_versions` that an item lags behind."""

    def __init__(self, capacity: int, *, exponent: float, half_life_versions: float) -> None:
        self._exponent = exponent
        self._version: npt.NDArray[np.uint32] = np.zeros(capacity, np.uint32)
        self._decaying = _Decaying(capacity, half_life=half_life_versions)

    @property
    def sampleable(self) -> int:
        return self._decaying.slots.sampleable

    @property
    def mass(self) -> float:
        return self._decaying.mass

    @property
    def min_probability(self) -> float:
        return self._decaying.slots.min_probability

    def insert(self, slots: Ints, priorities: Floats, *, numbers: Ints, versions: Counts) -> None:
        self._decaying.grow(versions)
        self._version[slots] = versions
        self._decaying.slots.insert(slots, self._weights(slots, priorities))

    def remove(self, slots: Ints) -> None:
        self._decaying.slots.remove(slots)

    def update(self, slots: Ints, priorities: Floats) -> None:
        self._decaying.slots.update(slots, self._weights(slots, priorities))

    def _weights(self, slots: Ints, priorities: Floats) -> Floats:
        births = self._version[slots].astype(np.int64)
        weights = weights_of(priorities, exponent=self._exponent) * self._decaying.decay.weights(births)
        return np.maximum(weights, np.ldexp(1.0, LOWEST), out=weights, where=priorities > 0.0)

    def advance(self, version: int) -> None:
        self._decaying.decay.newest = max(self._decaying.decay.newest, version)

    def probability(self, slots: Ints) -> Floats:
        return self._decaying.slots.probability(slots)

    def select(self, count: int, *, generator: np.random.Generator, uses_left: npt.NDArray[Any] | None) -> Selection:
        return self._decaying.slots.draw(count, generator=generator)

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        return self._decaying.slots.draw_distinct(count, generator=generator)

    def order(self) -> Ints | None:
        return None

    def facts(self) -> dict[str, float]:
        return self._decaying.facts()

    def resume(self, facts: Mapping[str, float]) -> None:
        self._decaying.resume(facts)
