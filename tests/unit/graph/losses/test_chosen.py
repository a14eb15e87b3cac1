"""The distribution of one action."""

from __future__ import annotations

import numpy as np

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.losses.chosen import chosen


def test_each_row_gives_that_of_its_action() -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    assert chosen(NumpyOps(), x, np.array([2, 0])).tolist() == [[4.0, 5.0], [6.0, 7.0]]
