"""Layer normalization."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.graph.component_test import component_test
from rollstream.graph.components import LayerNorm


def test_each_row_gets_mean_0_and_variance_1_then_scale_and_offset(run: Callable[..., Any]) -> None:
    parameters = {"scale": [1.0, 1.0, 2.0], "offset": [0.0, 10.0, 0.0]}
    y = run(LayerNorm(epsilon=0.0), np.array([[1.0, 2.0, 6.0]], np.float32), parameters=parameters)
    deviation = math.sqrt(14 / 3)  # mean 3; squares 4, 1, 9
    assert y[0] == pytest.approx([-2 / deviation, 10 - 1 / deviation, 2 * 3 / deviation], rel=1e-6)


def test_it_is_torchs_layer_norm(run: Callable[..., Any], generator: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    x = generator.normal(3.0, 2.0, (4, 6)).astype(np.float32)
    expected = torch.nn.functional.layer_norm(torch.from_numpy(x), (6,)).numpy()
    np.testing.assert_allclose(run(LayerNorm(), x, parameters={"scale": np.ones(6), "offset": np.zeros(6)}), expected, atol=1e-5)


def test_all_modes_agree() -> None:
    component_test(LayerNorm(), {"output": {"x": spaces.Box(-1, 1, (5,))}})
