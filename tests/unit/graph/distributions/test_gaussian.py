"""The Gaussian, against torch.distributions."""

from __future__ import annotations

import numpy as np
import torch

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.distributions import gaussian

OPS = NumpyOps()


def of_torch(mean: np.ndarray, log_std: np.ndarray) -> torch.distributions.Distribution:
    return torch.distributions.Independent(torch.distributions.Normal(torch.tensor(mean), torch.tensor(log_std).exp()), 1)


def test_numbers_are_those_of_torch(generator: np.random.Generator) -> None:
    mean, log_std, other_mean, other_log_std, x = (generator.standard_normal((5, 3)).astype(np.float32) for _ in range(5))
    ours, other = of_torch(mean, log_std), of_torch(other_mean, other_log_std)
    np.testing.assert_allclose(gaussian.log_prob(OPS, mean, log_std, x), ours.log_prob(torch.tensor(x)), rtol=1e-5)
    np.testing.assert_allclose(gaussian.entropy(OPS, log_std), ours.entropy(), rtol=1e-5)
    divergence = torch.distributions.kl_divergence(ours, other)
    np.testing.assert_allclose(gaussian.kl(OPS, mean, log_std, other_mean, other_log_std), divergence, rtol=1e-4)


def test_samples_are_noise_in_its_own_units() -> None:
    mean, log_std = np.array([[1.0, -1.0]], np.float32), np.log(np.array([[2.0, 0.5]], np.float32))
    np.testing.assert_allclose(gaussian.sample(OPS, mean, log_std, np.array([[1.5, -2.0]], np.float32)), [[4.0, -2.0]], rtol=1e-6)
