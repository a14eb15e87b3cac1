"""Streams and addresses as numbers: the different ones of them, however they stand."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.replay.stream_ids import distinct


@pytest.mark.parametrize(
    "values",
    [[], [3], [2, 2, 2], [1, 2, 5, 9], [1, 1, 4, 4, 4, 6], [7, 7, 5, 5, 7, 6], [9, 5, 9, 5, 1], [(1 << 64) - 1, 0, 0]],
    ids=["none", "one", "alike", "in order", "in order with repeats", "groups", "mixed", "large"],
)
def test_distinct_values_are_those_of_numpy_with_their_places(values: list[int]) -> None:
    given = np.array(values, np.uint64)
    found = distinct(given)
    unique, which = np.unique(given, return_inverse=True)
    assert found.values.dtype == given.dtype
    assert found.values.tolist() == unique.tolist()
    assert found.which.tolist() == which.reshape(-1).tolist()
    assert found.which.dtype == np.int64
