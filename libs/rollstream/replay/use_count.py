"""How often a value came before in an array: counts the uses of items within one draw."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["occurrence"]

Ints = npt.NDArray[np.int64]


def occurrence(slots: Ints) -> Ints:
    """How often the same value stands before, for each value.

    >>> occurrence(np.array([3, 5, 3, 3])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rank = np.arange(len(slots)) - np.repeat(starts, np.diff(np.r_[starts, len(slots)]))
    result = np.empty(len(slots), np.int64)
    result[order] = rank
    return result
