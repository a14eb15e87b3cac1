"""The dense layer with noise in its weights."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import ConfigError, SpaceError
from rollstream.graph import declare
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.component_test import component_test
from rollstream.graph.components import NoisyDense
from rollstream.graph.scope import Parameters, Scope
from rollstream.graph.spaced import with_spaces

X = spaces.Box(-1, 1, (2,))
NOISE = spaces.Box(-2, 2, (5,))


def scope() -> Scope:
    parameters = {
        "weight": np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]], np.float32),
        "bias": np.array([0.5, 0.0, 0.0], np.float32),
        "weight_deviation": np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 1.0]], np.float32),
        "bias_deviation": np.array([0.1, 0.2, 0.3], np.float32),
    }
    return Scope(NumpyOps(), Parameters(live=parameters, frozen=parameters))


def test_noise_is_the_outer_product_of_the_signed_roots_of_its_two_parts() -> None:
    x = np.array([[2.0, -1.0]], np.float32)
    noise = np.array([[4.0, -9.0, 1.0, -4.0, 0.0]], np.float32)
    # f(e_in) = 2, -3; f(e_out) = 1, -2, 0. Means: x @ weight + bias = 2.5, -1, 3
    # y_0: weights moved by (1*2*1, 3*-3*1) = (2, -9), bias by 0.1: 2*2 + -1*-9 + 0.1 = 13.1
    # y_1: by (2*2*-2, 0) = (-8, 0), bias by -0.4: 2*-8 - 0.4 = -16.4;   y_2: f(e_out) is 0
    y = NoisyDense(features=3).output(scope(), x, noise)
    np.testing.assert_allclose(y, [[15.6, -17.4, 3.0]], rtol=1e-6)


def test_without_noise_it_is_a_dense_layer() -> None:
    y = NoisyDense(features=3).output(scope(), np.array([[2.0, -1.0]], np.float32))
    np.testing.assert_allclose(y, [[2.5, -1.0, 3.0]])


def test_deviations_start_as_in_the_paper() -> None:
    layout = declare(with_spaces(NoisyDense(features=3), {"output": {"x": spaces.Box(-1, 1, (16,))}})).layout
    start = layout.split(layout.init(0))
    assert start["weight_deviation"].tolist() == np.full((16, 3), 0.5 / 4).tolist()
    assert start["bias_deviation"].tolist() == [0.125] * 3


def test_all_modes_agree() -> None:
    component_test(NoisyDense(features=3, activation="relu"), {"output": {"x": X, "noise": NOISE}})


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"deviation must be >= 0, got -1\.0; 0\.5 is that of the paper"):
        NoisyDense(features=3, deviation=-1.0)
    with pytest.raises(SpaceError, match=r"NoisyDense\.output, argument noise: needs the shape \[B, 5\], got \[2, 4\]"):
        declare(with_spaces(NoisyDense(features=3), {"output": {"x": X, "noise": spaces.Box(-1, 1, (4,))}}))
