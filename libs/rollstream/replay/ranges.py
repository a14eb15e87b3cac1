"""Many integer ranges as one array: the loop over runs of rows or chunks that NumPy does not have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["concatenated_ranges"]

Ints = npt.NDArray[np.int64]


def concatenated_ranges(starts: Ints, lengths: Ints) -> Ints:
    """`[s, s+1, ..., s+l-1]` of each (start, length), one after another.

    >>> concatenated_ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    numbers: Ints = np.arange(total, dtype=np.int64) + np.repeat(starts - before, lengths)
    return numbers
