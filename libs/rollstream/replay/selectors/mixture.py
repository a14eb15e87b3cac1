"""Several selectors over the same members: each draw asks one of them, chosen by weight.

The probability of a drawn slot is the sum over the parts, whichever part drew it, so importance weights stay exact. Over shards each
shard mixes on its own, and the shards are weighed by their numbers of items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.selectors.arrival import ArrivalSelector
from rollstream.replay.selectors.heap import HeapSelector
from rollstream.replay.selectors.passes import PassSelector
from rollstream.replay.selectors.protocol import Counts, Floats, Ints, Selection, Selector

__all__ = ["MixtureSelector"]

ORDERED = (ArrivalSelector, HeapSelector)


class MixtureSelector:
    """Draws from `parts` in proportion to `weights`."""

    def __init__(self, parts: Sequence[Selector], *, weights: Sequence[float]) -> None:
        self._parts = list(parts)
        self._shares: Floats = np.array(weights, np.float64) / np.sum(weights)
        self._size = 0

    @property
    def sampleable(self) -> int:
        return max(part.sampleable for part in self._parts)

    @property
    def mass(self) -> float:
        return float(self.sampleable)

    @property
    def min_probability(self) -> float:
        """Exact where the parts put their least likely members in the same place (all but weights by age beside priorities);
        otherwise a bound from below, which makes weights normalized by it smaller, never larger. 0 when a part does not know."""
        least, lone = 0.0, 1.0
        for part, share in zip(self._parts, self._shares, strict=True):
            smallest = float(share) * part.min_probability
            if smallest == 0.0:
                return 0.0
            lone = min(lone, smallest)
            reaches_all = part.sampleable == self._size and (self._size <= 1 or not isinstance(part, ORDERED))
            least += smallest if reaches_all else 0.0
        return least or lone

    def insert(self, slots: Ints, priorities: Floats, *, numbers: Ints, versions: Counts) -> None:
        """Restored members come in the order of one part; parts that name members by age take them by age."""
        self._size += len(slots)
        by_age = np.argsort(numbers, kind="stable") if (numbers[1:] < numbers[:-1]).any() else None
        for part in self._parts:
            if by_age is None or not isinstance(part, ArrivalSelector):
                part.insert(slots, priorities, numbers=numbers, versions=versions)
            else:
                part.insert(slots[by_age], priorities[by_age], numbers=numbers[by_age], versions=versions[by_age])

    def remove(self, slots: Ints) -> None:
        self._size -= len(slots)
        for part in self._parts:
            part.remove(slots)

    def update(self, slots: Ints, priorities: Floats) -> None:
        for part in self._parts:
            part.update(slots, priorities)

    def advance(self, version: int) -> None:
        for part in self._parts:
            part.advance(version)

    def probability(self, slots: Ints) -> Floats:
        total: Floats = np.zeros(len(slots))
        for part, share in zip(self._parts, self._shares, strict=True):
            total += share * part.probability(slots)
        return total

    def select(self, count: int, *, generator: np.random.Generator, uses_left: npt.NDArray[Any] | None) -> Selection:
        counts = generator.multinomial(count, self._shares)
        drawn: list[Ints] = [np.zeros(0, np.int64)]
        probability: list[Floats] = [np.zeros(0)]
        for asked, wanted in enumerate(counts.tolist()):
            if not wanted:
                continue
            # Before the draw, which may move what a part names first.
            others = [
                (part, share) for at, (part, share) in enumerate(zip(self._parts, self._shares, strict=True)) if at != asked
            ]
            selection = self._parts[asked].select(wanted, generator=generator, uses_left=uses_left)
            total = self._shares[asked] * selection.probability
            for part, share in others:
                total += share * part.probability(selection.slots)
            drawn.append(selection.slots)
            probability.append(total)
        slots, chances = np.concatenate(drawn), np.concatenate(probability)
        order = generator.permutation(len(slots))
        return Selection(slots=slots[order], probability=chances[order])

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        """Each part names as many as fall to it, leaving out what another has named; within a part in its order."""
        whose = generator.choice(len(self._parts), count, p=self._shares)
        chosen: Ints = np.zeros(count, np.int64)
        named: Ints = np.zeros(0, np.int64)
        for at, part in enumerate(self._parts):
            places = np.flatnonzero(whose == at)
            if len(places):
                candidates = part.select_distinct(len(named) + len(places), generator=generator)
                chosen[places] = candidates[~np.isin(candidates, named)][: len(places)]
                named = np.concatenate([named, chosen[places]])
        return chosen

    def order(self) -> Ints | None:
        """That of a part without replacement; else that of a heap. Draws of the others do not depend on it."""
        for kind in (PassSelector, HeapSelector, ArrivalSelector):
            for part in self._parts:
                if isinstance(part, kind) and (order := part.order()) is not None:
                    return order
        return None

    def facts(self) -> dict[str, float]:
        return {f"{at}.{name}": value for at, part in enumerate(self._parts) for name, value in part.facts().items()}

    def resume(self, facts: Mapping[str, float]) -> None:
        for at, part in enumerate(self._parts):
            prefix = f"{at}."
            part.resume({name.removeprefix(prefix): value for name, value in facts.items() if name.startswith(prefix)})
