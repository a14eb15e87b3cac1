"""What a selector is: a rule over a changing set of slots which says what is sampled, or what leaves a full table.

`select` draws with replacement, as one draw after another would; `select_distinct` draws without, for removal. Anything that
fulfils `Selector` can stand on either side. All calls work on batches; there is no loop per item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Counts", "Floats", "Ints", "Selection", "Selector"]

Ints: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = npt.NDArray[np.integer[Any]]
"""Whole numbers of whatever width the table keeps them in."""
Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Chosen slots [K] and the probability [K] with which each was chosen."""

    slots: Ints
    probability: Floats


class Selector(Protocol):
    """A rule over a set of slots. Slots in one call of insert, remove or update are distinct; those of the last two are members."""

    def insert(self, slots: Ints, priorities: Floats, *, numbers: Ints, versions: Counts) -> None:
        """Take in new members.

        Args:
            numbers: in which order items came to the table; ascending, except when a state is restored by `order`.
            versions: of the weights that acted in each item's newest row.
        """
        ...

    def remove(self, slots: Ints) -> None: ...

    def update(self, slots: Ints, priorities: Floats) -> None: ...

    def advance(self, version: int) -> None:
        """Weights of this version exist: lag counts from the newest that was ever named."""
        ...

    @property
    def sampleable(self) -> int:
        """Members that can be drawn now: N of importance weights."""
        ...

    @property
    def mass(self) -> float:
        """What batches are split by over the shards of a table: the sum of weights, or `sampleable` where there are none.

        Above 0 while there is a member that can be drawn.
        """
        ...

    @property
    def min_probability(self) -> float:
        """The smallest probability, above 0, with which one draw now gives a member; 1 for an empty set, 0 when not known."""
        ...

    def probability(self, slots: Ints) -> Floats:
        """With which probability [K] one draw now gives each of `slots` [K] (members)."""
        ...

    def select(self, count: int, *, generator: np.random.Generator, uses_left: npt.NDArray[Any] | None) -> Selection:
        """Draw `count` slots with replacement from a set that is not empty.

        Args:
            uses_left: by slot, how often an item may still be drawn; only rules that always name the same item look at it, and
                they may return fewer than `count`.
        """
        ...

    def select_distinct(self, count: int, *, generator: np.random.Generator) -> Ints:
        """Draw `count` different slots, as if each left the set once drawn; `count` is at most the size of the set."""
        ...

    def order(self) -> Ints | None:
        """Slots in the order in which inserting them anew gives the same future draws; None where that is the order of age."""
        ...

    def facts(self) -> dict[str, float]:
        """What else a snapshot must keep."""
        ...

    def resume(self, facts: Mapping[str, float]) -> None:
        """Take up `facts` after all members are inserted anew."""
        ...
