"""Distributions over returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import ConfigError
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Atoms

X = np.ones((1, 1), np.float32)


def test_values_are_the_means_of_the_distributions(run: Callable[..., Any]) -> None:
    head = Atoms(actions=2, atoms=3, low=-1.0, high=3.0)
    assert head.support.tolist() == [-1.0, 1.0, 3.0]
    logits = np.log([[0.5, 0.25, 0.25, 0.1, 0.1, 0.8]])
    parameters = {"weight": logits, "bias": np.zeros(6)}
    probabilities = np.exp(run(head, X, parameters=parameters))
    np.testing.assert_allclose(probabilities, [[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]], atol=1e-6)
    # -0.5 + 0.25 + 0.75, -0.1 + 0.1 + 2.4
    np.testing.assert_allclose(run(head, X, parameters=parameters, api="values"), [[0.5, 2.4]], atol=1e-6)


def test_dueling_takes_the_mean_advantage_of_each_atom_off(run: Callable[..., Any]) -> None:
    head = Atoms(actions=2, atoms=2, low=0.0, high=1.0, dueling=True)
    parameters = {
        "value.weight": [[1.0, 0.0]],
        "value.bias": [0.0, 0.0],
        "advantage.weight": [[2.0, 0.0, 0.0, 4.0]],
        "advantage.bias": np.zeros(4),
    }
    # logits: value (1, 0), advantages (2, 0) and (0, 4) with mean (1, 2) -> (2, -2) and (0, 2)
    expected = 1 / (1 + np.exp([[4.0, -2.0]]))
    np.testing.assert_allclose(run(head, X, parameters=parameters, api="values"), expected, rtol=1e-5)


@pytest.mark.parametrize("dueling", [False, True])
def test_all_modes_agree(dueling: bool) -> None:
    space = {"x": spaces.Box(-1, 1, (3,))}
    component_test(Atoms(actions=2, atoms=5, dueling=dueling), {"output": space, "values": space})


@pytest.mark.parametrize("settings", [{"atoms": 1}, {"low": 1.0, "high": 1.0}])
def test_a_support_of_one_return_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Atoms needs at least 2 atoms and low < high, got"):
        Atoms(actions=2, **settings)
