"""Leaves: what remains of a nested Gymnasium space once its dictionaries and tuples are flattened to dotted names.

Policies and row layouts are derived from leaves, so neither knows Gymnasium.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rollstream.spaces.row_spec import Column

__all__ = ["Leaf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One fundamental space under its dotted name (`observation`, `observation.camera`, `action`).

    Attributes:
        kind: which Gymnasium space it was.
        dtype: little-endian NumPy dtype string of its values, as stored.
        shape: shape of one value; () for Discrete.
        low, high: bounds of a Box, flattened; empty for other kinds.
        counts: number of choices: (n,) for Discrete, flattened nvec for MultiDiscrete; empty for other kinds.
        starts: smallest value of each choice, as long as `counts`.
    """

    name: str
    kind: Literal["box", "discrete", "multi_discrete", "multi_binary"]
    dtype: str
    shape: tuple[int, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()

    @property
    def column(self) -> Column:
        return Column(name=self.name, dtype=self.dtype, shape=self.shape)

    @property
    def size(self) -> int:
        """Numbers in one value."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def features(self) -> int:
        """Width after one-hot encoding of choices: what a dense layer sees."""
        return sum(self.counts) if self.counts else self.size
