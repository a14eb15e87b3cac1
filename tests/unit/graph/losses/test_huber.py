"""The Huber loss."""

from __future__ import annotations

import numpy as np

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.losses.huber import huber


def test_it_is_squared_near_zero_and_linear_beyond() -> None:
    # 0.5 * 0.5²;  1 * (3 - 0.5) on either side
    np.testing.assert_allclose(huber(NumpyOps(), np.array([0.5, 3.0, -3.0]), delta=1.0), [0.125, 2.5, 2.5])
    # delta 2: 2 * (3 - 1)
    np.testing.assert_allclose(huber(NumpyOps(), np.array([3.0]), delta=2.0), [4.0])
