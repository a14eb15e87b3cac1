"""A user's own selector: a class of five methods on batches, found by name.

In one process, `register_selector("rank", RankSelector)` makes it known; for services, a package declares the entry point

    [project.entry-points."rollstream.selectors"]
    rank = "my_package:RankSelector"

and is installed where the replay shards run. A table then says `Plugin(name="rank", options={"exponent": 0.7})`. Only names cross the
network, never a path to import.

The rank-based variant of prioritized replay, p ~ 1 / rank ** exponent:

>>> class RankSelector:
...     def __init__(self, capacity: int, *, exponent: float = 1.0) -> None:
...         self.exponent = exponent
...         self.priority = np.full(capacity, -1.0)  # -1: not a member
...         self.chance = np.zeros(capacity)
...
...     def insert(self, slots, priorities, *, numbers, versions):
...         self.update(slots, priorities)
...
...     def remove(self, slots):
...         self.update(slots, -1.0)
...
...     def update(self, slots, priorities):
...         self.priority[slots] = priorities
...         self.ranked = np.argsort(-self.priority)[: np.count_nonzero(self.priority >= 0.0)]
...         weights = np.arange(1, len(self.ranked) + 1) ** -self.exponent
...         self.chance[self.ranked] = weights / weights.sum()
...
...     def draw(self, count, *, generator):
...         return generator.choice(self.ranked, count, p=self.chance[self.ranked])
...
...     def probability(self, slots):
...         return self.chance[slots]
>>> register_selector("rank", RankSelector)
>>> selector = PluginSelector("rank", {}, capacity=10)
>>> slots = np.array([4, 7, 9])
>>> selector.insert(slots, np.array([0.1, 5.0, 0.2]), numbers=np.arange(3), versions=np.zeros(3, int))
>>> (selector.probability(slots) * 11).round(6).tolist()
[2.0, 6.0, 3.0]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, TableError
from rollstream.replay.selectors.protocol import Counts, Floats, Ints, Selection
from rollstream.replay.selectors.slot_set import SlotSet

__all__ = ["CustomSelector", "PluginSelector", "register_selector"]

ENTRY_POINTS = "rollstream.selectors"
FRUITLESS_DRAWS = 16
"""How many draws in a row may bring nothing new when different items are wanted; then the rest is drawn uniformly."""


class CustomSelector(Protocol):
    """What a user writes. Slots are places 0..capacity-1; those of one call of insert, remove or update are distinct."""

    def insert(self, slots: Ints, priorities: Floats, *, numbers: Ints, versions: Counts) -> None:
        """Take in new members; `numbers` say in which order they came, `versions` which weights acted in their newest row."""
        ...

    def remove(self, slots: Ints) -> None: ...

    def update(self, slots: Ints, priorities: Floats) -> None: ...

    def draw(self, count: int, *, generator: np.random.Generator) -> Ints:
        """`count` members with replacement; only asked when there are any. Take all chance from `generator`."""
        ...

    def probability(self, slots: Ints) -> Floats:
        """With which probability [K] one draw now gives each of `slots` [K] (members)."""
        ...


_registered: dict[str, Callable[..., CustomSelector]] = {}


def register_selector(name: str, factory: Callable[..., CustomSelector]) -> None:
    """Make `factory(capacity, **options)` known in this process under `name`; the last one of a name counts."""
    _registered[name] = factory


def _factory(name: str) -> Callable[..., CustomSelector]:
    if name in _registered:
        return _registered[name]
    installed = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name in installed:
        factory: Callable[..., CustomSelector] = installed[name].load()
        return factory
    known = ", ".join(sorted({*_registered, *installed})) or "none"
    raise ConfigError(
        f"selector plug-in {name!r} is not known here; known: {known}; register it with register_selector, or install a package "
        f"that has it as an entry point in the group {ENTRY_POINTS} where the replay shards run"
    )


class PluginSelector:
    """A user's selector with everything around it that can be had without the user; what it answers is checked."""

    def __init__(self, name: str, options: Mapping[str, Any], *, capacity: int) -> None:
        factory = _factory(name)
        try:
            self._custom = factory(capacity, **options)
        except TypeError as error:
            raise ConfigError(f"selector plug-in {name!r} does not take options {dict(options)}: {error}") from error
        self._name = name
        self._members = SlotSet(capacity)

    @property
    def sampleable(self) -> int:
        return self._members.size

    @property
    def mass(self) -> float:
        return float(self._members.size)

    @property
    def min_probability(self) -> float:
        """0: not known. To find out, the plug-in would have to be asked for every member."""
        return 0.0

    def insert(self, slots: Ints, priorities: Floats, *, numbers: Ints, versions: Counts) -> None:
        self._members.add(slots)
        self._custom.insert(slots, priorities, numbers=numbers, versions=versions)

    def remove(self, slots: Ints) -> None:
        self._members.remove(slots)
        self._custom.remove(slots)

    def update(self, slots: Ints, priorities: Floats) -> None:
        self._custom.update(slots, priorities)

    def advance(self, version: int) -> None:
        return

    def probability(self, slots: Ints) -> Floats:
        chances = np.asarray(self._custom.probability(slots), np.float64)
        if chances.shape != slots.shape or not ((chances >= 0.0) & (chances <= 1.0 + 1e-9)).all():
            raise TableError(
                f"selector plug-in {self._name!r}: probability must give {len(slots)} numbers from 0 to 1, got {_told(chances)}"
            )
        return chances

    def select(self, count: int, *, generator: np.random.Generator, uses_left: npt.NDArray[Any] | None) -> Selection:
        slots = self._draw(count, generator=generator)
        chances = self.probability(slots)
        if not chances.all():
            raise TableError(f"selector plug-in {self._name!r}: drew a slot to which its probability gives 0")
        return Selection(slots=slots, probability=chances)

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        found: Ints = np.zeros(0, np.int64)
        fruitless = 0
        while len(found) < count and fruitless < FRUITLESS_DRAWS:
            drawn = np.concatenate([found, self._draw(count, generator=generator)])
            _, first = np.unique(drawn, return_index=True)
            first.sort()
            fruitless = 0 if len(first) > len(found) else fruitless + 1
            found = drawn[first[:count]]
        if len(found) < count:
            rest = np.setdiff1d(self._members.members(), found)
            found = np.concatenate([found, generator.permutation(rest)[: count - len(found)]])
        return found

    def _draw(self, count: int, *, generator: np.random.Generator) -> Ints:
        drawn = np.asarray(self._custom.draw(count, generator=generator))
        if drawn.shape != (count,) or drawn.dtype.kind not in "iu":
            raise TableError(f"selector plug-in {self._name!r}: draw must give {count} slots, got {_told(drawn)}")
        slots = drawn.astype(np.int64)
        inside = (slots >= 0) & (slots < len(self._members.has))
        if not (inside.all() and self._members.has[slots].all()):
            raise TableError(f"selector plug-in {self._name!r}: drew a slot that is no member; forget slots in remove")
        return slots

    def order(self) -> Ints | None:
        return None

    def facts(self) -> dict[str, float]:
        return {}

    def resume(self, facts: Mapping[str, float]) -> None:
        return


def _told(answer: np.ndarray[Any, Any]) -> str:
    return f"{answer.dtype.name} {list(answer.shape)}"
