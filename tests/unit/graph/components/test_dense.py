"""A dense layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import SpaceError
from rollstream.graph import build
from rollstream.graph.components import Dense


def test_inputs_are_weighed_and_the_bias_put_on(run: Callable[..., Any]) -> None:
    parameters = {"weight": [[1.0, -1.0], [2.0, 0.5]], "bias": [0.5, -3.0]}
    y = run(Dense(features=2), np.array([[1.0, 2.0]], np.float32), parameters=parameters)
    assert y.tolist() == [[5.5, -3.0]]  # 1 + 4 + 0.5, -1 + 1 - 3
    relu = run(Dense(features=2, activation="relu"), np.array([[1.0, 2.0]], np.float32), parameters=parameters)
    assert relu.tolist() == [[5.5, 0.0]]


def test_a_space_of_another_rank_is_refused_by_path_api_and_argument() -> None:
    needs = r"\(root\): Dense.output, argument x: needs the shape \[B, F\], got \[2, 3, 4\]"
    with pytest.raises(SpaceError, match=needs):
        build(Dense(features=2), {"output": {"x": spaces.Box(-1, 1, (3, 4))}})
