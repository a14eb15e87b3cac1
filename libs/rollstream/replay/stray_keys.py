"""Slots of keys that lie far apart: one sorted list, twelve bytes a key, for those that a page each would be too much for.

A key that leaves is only marked, and taken out when half of the list is gone, so that no removal moves the whole list.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["StrayKeys"]

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
GONE = -1


class StrayKeys:
    """Slots by key. Its length is the number of keys that are there.

    >>> stray = StrayKeys()
    >>> stray.add(np.array([3, 1 << 40], np.uint64), np.array([7, 8]))
    >>> stray.remove(np.array([3, 5], np.uint64)).tolist(), len(stray)
    ([True, False], 1)
    """

    def __init__(self) -> None:
        self._keys = np.zeros(0, np.uint64)
        self._slots = np.zeros(0, np.int32)
        self._gone = 0

    def __len__(self) -> int:
        return len(self._keys) - self._gone

    def add(self, keys: Keys, slots: Ints) -> None:
        """Note the slots [K] of new `keys` [K]."""
        self._take_out_gone()
        joined = np.concatenate([self._keys, keys])
        order = np.argsort(joined, kind="stable")
        self._keys = joined[order]
        self._slots = np.concatenate([self._slots, slots.astype(np.int32)])[order]

    def find(self, keys: Keys) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Slots [K] of `keys` [K] and whether there is one; where not, the slot is 0."""
        at, known = self._search(keys)
        return np.where(known, self._slots[at], 0).astype(np.int64), known

    def remove(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """Forget those of `keys` [K], all distinct, that are here; returns which."""
        at, known = self._search(keys)
        self._slots[at[known]] = GONE
        self._gone += int(known.sum())
        if 2 * self._gone > len(self._keys):
            self._take_out_gone()
        return known

    def _search(self, keys: Keys) -> tuple[Ints, npt.NDArray[np.bool_]]:
        at = self._keys.searchsorted(keys)
        np.minimum(at, len(self._keys) - 1, out=at)
        return at, (self._keys[at] == keys) & (self._slots[at] != GONE)

    def _take_out_gone(self) -> None:
        if self._gone:
            there = self._slots != GONE
            self._keys, self._slots, self._gone = self._keys[there], self._slots[there], 0
