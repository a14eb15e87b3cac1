"""The squashed Gaussian, against torch.distributions and quadrature."""

from __future__ import annotations

import numpy as np
import torch

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.distributions import squashed_gaussian

OPS = NumpyOps()


def test_the_density_is_that_of_torch(generator: np.random.Generator) -> None:
    mean, log_std, u = (generator.standard_normal((5, 3)).astype(np.float32) for _ in range(3))
    normal = torch.distributions.Normal(torch.tensor(mean).double(), torch.tensor(log_std).double().exp())
    squashed = torch.distributions.TransformedDistribution(normal, torch.distributions.TanhTransform())
    expected = squashed.log_prob(torch.tanh(torch.tensor(u).double())).sum(-1)
    np.testing.assert_allclose(squashed_gaussian.log_prob(OPS, mean, log_std, u), expected, rtol=1e-5)


def test_the_density_over_the_interval_has_area_one() -> None:
    u = np.linspace(-9, 9, 20_001)[:, None]
    mean, log_std = np.full_like(u, 0.3), np.full_like(u, -0.2)
    density = np.exp(squashed_gaussian.log_prob(NumpyOps(dtype=np.float64), mean, log_std, u))
    np.testing.assert_allclose(np.trapezoid(density, np.tanh(u[:, 0])), 1.0, rtol=1e-6)


def test_the_slope_is_exact_where_tanh_is_one_in_float32() -> None:
    u = np.array([[12.0, -12.0, 0.0]], np.float32)
    np.testing.assert_allclose(squashed_gaussian.log_slope(OPS, u), [[2 * np.log(2) - 24, 2 * np.log(2) - 24, 0.0]], atol=1e-5)


def test_the_mean_of_the_estimate_is_the_entropy(generator: np.random.Generator) -> None:
    rows = 200_000
    mean, log_std = np.full((rows, 1), 0.5), np.full((rows, 1), -0.5)
    u = mean + np.exp(log_std) * generator.standard_normal((rows, 1))
    estimate = squashed_gaussian.entropy(NumpyOps(dtype=np.float64), mean, log_std, u)
    grid = np.linspace(-9, 9, 20_001)[:, None]
    log_density = squashed_gaussian.log_prob(NumpyOps(dtype=np.float64), np.full_like(grid, 0.5), np.full_like(grid, -0.5), grid)
    expected = -np.trapezoid(np.exp(log_density) * log_density, np.tanh(grid[:, 0]))
    np.testing.assert_allclose(estimate.mean(), expected, atol=0.01)


def test_its_middle_is_tanh_of_the_mean() -> None:
    np.testing.assert_allclose(squashed_gaussian.mode(OPS, np.array([[0.5]], np.float32)), [[np.tanh(0.5)]], rtol=1e-6)
