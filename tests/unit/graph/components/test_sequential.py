"""Parts in a row, and a way around one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import SpaceError
from rollstream.graph import build
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Dense, LayerNorm, Residual, Sequential

SPACES = {"output": {"x": spaces.Box(-1, 1, (3,))}}


def test_each_layer_sees_what_the_one_before_gave(run: Callable[..., Any]) -> None:
    parameters = {"0.weight": [[2.0]], "0.bias": [1.0], "1.weight": [[10.0]], "1.bias": [0.0]}
    both = Sequential((Dense(features=1), Dense(features=1)))
    assert run(both, np.array([[3.0]], np.float32), parameters=parameters).tolist() == [[70.0]]


def test_a_residual_adds_what_its_layer_changes(run: Callable[..., Any]) -> None:
    parameters = {"layer.weight": [[2.0]], "layer.bias": [1.0]}
    assert run(Residual(Dense(features=1)), np.array([[3.0]], np.float32), parameters=parameters).tolist() == [[10.0]]


def test_all_modes_agree() -> None:
    component_test(Sequential((Residual(Sequential((LayerNorm(), Dense(features=3)))), Dense(features=2))), SPACES)


def test_a_layer_that_does_not_keep_the_shape_is_refused_with_its_path() -> None:
    needs = r"1: Residual.output, argument layer\(x\): needs the shape \[2, 3\], got \[2, 4\]"
    with pytest.raises(SpaceError, match=needs):
        build(Sequential((LayerNorm(), Residual(Dense(features=4)))), SPACES)
