"""The dueling head."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Dueling
from rollstream.graph.scope import Parameters, Scope


def test_the_mean_advantage_is_taken_off_and_the_value_put_on() -> None:
    parameters = {
        "value.weight": np.array([[2.0]], np.float32),
        "value.bias": np.array([1.0], np.float32),
        "advantage.weight": np.array([[1.0, 2.0, 3.0]], np.float32),
        "advantage.bias": np.zeros(3, np.float32),
    }
    scope = Scope(NumpyOps(), Parameters(live=parameters, frozen=parameters))
    q = Dueling(actions=3).output(scope, np.array([[1.0]], np.float32))
    # V = 2 * 1 + 1 = 3; A = 1, 2, 3 with mean 2
    np.testing.assert_allclose(q, [[2.0, 3.0, 4.0]])


def test_all_modes_agree() -> None:
    component_test(Dueling(actions=3), {"output": {"x": spaces.Box(-1, 1, (4,))}})
