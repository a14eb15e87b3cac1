"""The best choice, and sometimes any allowed one."""

from __future__ import annotations

import numpy as np

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.distributions import epsilon_greedy


def test_noise_says_whether_to_explore_and_where_to() -> None:
    values = np.array([[0.0, 3.0, 1.0]] * 4, np.float32)
    allowed = np.log(np.array([[0.5, 1e-30, 0.5]] * 4, np.float32))
    noise = np.array([[0.31, 0.0], [0.29, 0.0], [0.29, 0.4], [0.29, 0.6]], np.float32)
    epsilon = np.full(4, 0.3, np.float32)
    assert epsilon_greedy.sample(NumpyOps(), values, allowed, noise, epsilon).tolist() == [1, 0, 0, 2]
