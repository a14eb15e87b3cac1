"""Runs: the episodes that items lie in, each once, so that an item needs one number for writer, environment and episode.

A run is held by its items and by its writer as long as that may still make items in it. When nobody holds it, the episode is
gone from the table, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Runs"]

Ints = npt.NDArray[np.int64]
ONE = np.int32(1)


class Runs:
    """Columns by place: writer, environment, first row, and how many hold the run."""

    COLUMNS = ("writer", "env", "start", "holders", "_free")

    def __init__(self) -> None:
        self.writer = np.zeros(64, np.uint32)
        self.env = np.zeros(64, np.uint32)
        self.start = np.zeros(64, np.int64)
        self.holders = np.zeros(64, np.int32)
        self._free = np.zeros(64, np.int32)
        self._free_count = 0
        self._high = 0
        self.begun = 0

    @property
    def high(self) -> int:
        """Places that were ever used."""
        return self._high

    @property
    def alive(self) -> int:
        """Episodes of which rows are held."""
        return self._high - self._free_count

    @property
    def deleted(self) -> int:
        """Episodes of which nothing is held any more."""
        return self.begun - self.alive

    def allocate(self, *, writer: int | npt.NDArray[np.uint32], env: npt.NDArray[np.uint32], start: Ints) -> Ints:
        """Places [K] of new runs, each held once (by its writer)."""
        count = len(env)
        reused = min(count, self._free_count)
        self._free_count -= reused
        fresh = np.arange(self._high, self._high + count - reused)
        self._high += len(fresh)
        self.begun += count
        if self._high > len(self.start):
            self._grow(max(self._high, 2 * len(self.start)))
        places = np.concatenate([self._free[self._free_count : self._free_count + reused].astype(np.int64), fresh])
        self.writer[places] = writer
        self.env[places] = env
        self.start[places] = start
        self.holders[places] = 1
        return places

    def hold(self, places: Ints) -> None:
        """Count one holder more for each of `places` [K]."""
        np.add.at(self.holders, places, ONE)

    def release(self, places: Ints) -> None:
        """Count one holder less for each of `places` [K]."""
        np.subtract.at(self.holders, places, ONE)
        empty = places[self.holders[places] == 0]
        if len(empty):
            empty = np.unique(empty)
            self._free[self._free_count : self._free_count + len(empty)] = empty
            self._free_count += len(empty)

    def load(self, columns: Mapping[str, npt.NDArray[Any]], *, begun: int) -> None:
        """Start with known runs [K] that nobody holds yet; `settle` frees those that remain so."""
        count = len(columns["start"])
        self._grow(max(64, count))
        for name, column in columns.items():
            getattr(self, name)[:count] = column
        self.holders[:] = 0
        self._high, self._free_count, self.begun = count, 0, begun

    def settle(self) -> None:
        """Free the runs that nobody holds."""
        free = np.flatnonzero(self.holders[: self._high] == 0)[::-1]
        self._free[: len(free)] = free
        self._free_count = len(free)

    def _grow(self, size: int) -> None:
        for name in self.COLUMNS:
            old = getattr(self, name)
            new = np.zeros(size, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
