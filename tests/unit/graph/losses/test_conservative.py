"""The conservative term of offline Q-learning."""

from __future__ import annotations

import math

import numpy as np

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.losses.conservative import conservative_penalty


def test_it_is_the_soft_maximum_less_the_value_of_the_action_taken() -> None:
    q, taken = np.array([[0.0, math.log(3.0)], [5.0, 5.0]]), np.array([0, 1])
    np.testing.assert_allclose(conservative_penalty(NumpyOps(dtype=np.float64), q, taken), [math.log(4.0), math.log(2.0)])
