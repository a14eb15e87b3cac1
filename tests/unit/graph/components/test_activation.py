"""Functions after a layer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Dense, activate

X = np.array([-20.0, -1.0, 0.0, 2.0], np.float32)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (None, [-20.0, -1.0, 0.0, 2.0]),
        ("relu", [0.0, 0.0, 0.0, 2.0]),
        ("tanh", [-1.0, math.tanh(-1.0), 0.0, math.tanh(2.0)]),
        ("sigmoid", [0.0, 1 / (1 + math.e), 0.5, 1 / (1 + math.exp(-2.0))]),
        ("elu", [-1.0, math.exp(-1.0) - 1.0, 0.0, 2.0]),
        ("silu", [0.0, -1 / (1 + math.e), 0.0, 2 / (1 + math.exp(-2.0))]),
    ],
)
def test_values_are_those_of_the_formulas(name: str | None, expected: list[float]) -> None:
    np.testing.assert_allclose(activate(NumpyOps(), name, X), expected, atol=1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tanh", "relu", "elu", "silu", "sigmoid"])
def test_all_modes_agree_after_a_dense_layer(name: str) -> None:
    component_test(Dense(features=3, activation=name), {"output": {"x": spaces.Box(-1, 1, (4,))}})  # type: ignore[arg-type]
