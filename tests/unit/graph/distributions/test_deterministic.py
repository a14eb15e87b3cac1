"""Actions without chance, and the noise around them."""

from __future__ import annotations

import numpy as np

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.distributions import deterministic

OPS = NumpyOps()


def test_the_action_lies_between_minus_one_and_one() -> None:
    np.testing.assert_allclose(deterministic.mode(OPS, np.array([[0.0, 50.0]], np.float32)), [[0.0, 1.0]])


def test_noise_is_scaled_cut_and_kept_inside() -> None:
    action, noise = np.array([[0.0, 0.9, -0.5]], np.float32), np.array([[1.0, 2.0, -10.0]], np.float32)
    np.testing.assert_allclose(deterministic.perturbed(OPS, action, noise, scale=0.1), [[0.1, 1.0, -1.0]], rtol=1e-6)
    cut = deterministic.perturbed(OPS, action, noise, scale=0.1, limit=0.15)
    np.testing.assert_allclose(cut, [[0.1, 1.0, -0.65]], rtol=1e-6)
