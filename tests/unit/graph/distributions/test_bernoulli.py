"""Independent bits, against torch.distributions."""

from __future__ import annotations

import numpy as np
import torch

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.distributions import bernoulli

OPS = NumpyOps()


def test_numbers_are_those_of_torch(generator: np.random.Generator) -> None:
    logits, other = (generator.normal(0, 2, (6, 3)).astype(np.float32) for _ in range(2))
    bits = generator.integers(0, 2, (6, 3))
    of_torch = torch.distributions.Independent(torch.distributions.Bernoulli(logits=torch.tensor(logits)), 1)
    of_other = torch.distributions.Independent(torch.distributions.Bernoulli(logits=torch.tensor(other)), 1)
    np.testing.assert_allclose(bernoulli.log_prob(OPS, logits, bits), of_torch.log_prob(torch.tensor(bits).float()), rtol=1e-5)
    np.testing.assert_allclose(bernoulli.entropy(OPS, logits), of_torch.entropy(), rtol=1e-4)
    divergence = torch.distributions.kl_divergence(of_torch, of_other)
    np.testing.assert_allclose(bernoulli.kl(OPS, logits, other), divergence, rtol=1e-4)


def test_a_bit_is_set_where_noise_lies_below_its_probability() -> None:
    logits = np.array([[0.0, np.log(3.0), -np.log(3.0)]], np.float32)  # 0.5, 0.75, 0.25
    assert bernoulli.sample(OPS, logits, np.array([[0.49, 0.76, 0.24]], np.float32)).tolist() == [[1, 0, 1]]
    assert bernoulli.mode(OPS, logits).tolist() == [[0, 1, 0]]


def test_certain_bits_stay_finite() -> None:
    logits = np.array([[200.0, -200.0]], np.float32)
    assert bernoulli.log_prob(OPS, logits, np.array([[1, 0]])).tolist() == [0.0]
    assert bernoulli.log_prob(OPS, logits, np.array([[0, 1]])).tolist() == [-400.0]
    np.testing.assert_allclose(bernoulli.entropy(OPS, logits), [0.0], atol=1e-6)
