"""Concatenated ranges."""

from __future__ import annotations

import numpy as np

from rollstream.replay.ranges import concatenated_ranges


def test_empty_ranges_contribute_nothing() -> None:
    assert concatenated_ranges(np.array([7, 1, 9]), np.array([0, 2, 0])).tolist() == [1, 2]
    assert concatenated_ranges(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []
