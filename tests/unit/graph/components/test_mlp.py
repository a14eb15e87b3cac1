"""Dense layers in a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.graph.component_test import component_test
from rollstream.graph.components import Mlp

SPACES = {"output": {"x": spaces.Box(-1, 1, (5,))}}


def test_layers_follow_each_other(run: Callable[..., Any]) -> None:
    parameters = {"0.weight": [[1.0, -1.0]], "0.bias": [0.0, 0.0], "1.weight": [[2.0], [3.0]], "1.bias": [1.0]}
    y = run(Mlp(hidden=(2, 1), activation="relu"), np.array([[4.0], [-4.0]], np.float32), parameters=parameters)
    assert y.tolist() == [[9.0], [13.0]]  # 2 * 4 + 1, 3 * 4 + 1


def test_no_layers_are_no_change(run: Callable[..., Any]) -> None:
    x = np.array([[4.0]], np.float32)
    assert run(Mlp(hidden=(), activation="relu"), x) is x


def test_the_norm_stands_before_the_activation(run: Callable[..., Any]) -> None:
    parameters = {"0.weight": [[1.0, 3.0]], "0.bias": [5.0, 5.0], "0.norm.scale": [1.0, 1.0], "0.norm.offset": [0.0, 0.0]}
    y = run(Mlp(hidden=(2,), activation="relu", layer_norm=True), np.array([[100.0]], np.float32), parameters=parameters)
    assert y[0] == pytest.approx([0.0, 1.0], abs=1e-5)  # normalized -1 and 1; after relu first it would be the same only by luck


@pytest.mark.parametrize("layer_norm", [False, True])
def test_all_modes_agree(layer_norm: bool) -> None:
    component_test(Mlp(hidden=(4, 3), activation="tanh", layer_norm=layer_norm), SPACES)
