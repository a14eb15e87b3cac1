"""Quantiles of returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import ConfigError
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Quantiles


def test_values_are_the_means_of_the_quantiles(run: Callable[..., Any]) -> None:
    head = Quantiles(actions=2, quantiles=2)
    parameters = {"weight": [[1.0, 3.0, -1.0, 0.0]], "bias": np.zeros(4)}
    x = np.ones((1, 1), np.float32)
    assert run(head, x, parameters=parameters).tolist() == [[[1.0, 3.0], [-1.0, 0.0]]]
    assert run(head, x, parameters=parameters, api="values").tolist() == [[2.0, -0.5]]
    assert head.fractions.tolist() == [0.25, 0.75]


def test_all_modes_agree() -> None:
    space = {"x": spaces.Box(-1, 1, (3,))}
    component_test(Quantiles(actions=2, quantiles=5), {"output": space, "values": space})


def test_no_quantile_is_refused() -> None:
    with pytest.raises(ConfigError, match="Quantiles needs at least 1 quantile, got 0"):
        Quantiles(actions=2, quantiles=0)
