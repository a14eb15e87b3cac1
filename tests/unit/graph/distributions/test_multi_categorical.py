"""Several categorical distributions at once, against torch.distributions."""

from __future__ import annotations

import numpy as np
import torch

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.distributions import multi_categorical

OPS = NumpyOps()


def test_numbers_are_those_of_torch(generator: np.random.Generator) -> None:
    log_probs, other = (OPS.log_softmax(generator.standard_normal((6, 3, 4)).astype(np.float32)) for _ in range(2))
    choice = generator.integers(0, 4, (6, 3))
    of_torch = torch.distributions.Independent(torch.distributions.Categorical(logits=torch.tensor(log_probs)), 1)
    of_other = torch.distributions.Independent(torch.distributions.Categorical(logits=torch.tensor(other)), 1)
    found = multi_categorical.log_prob(OPS, log_probs, choice)
    np.testing.assert_allclose(found, of_torch.log_prob(torch.tensor(choice)), rtol=1e-5)
    np.testing.assert_allclose(multi_categorical.entropy(OPS, log_probs), of_torch.entropy(), rtol=1e-5)
    divergence = torch.distributions.kl_divergence(of_torch, of_other)
    np.testing.assert_allclose(multi_categorical.kl(OPS, log_probs, other), divergence, rtol=1e-4)


def test_each_choice_is_drawn_with_its_own_noise() -> None:
    log_probs = np.log(np.array([[[0.5, 0.5], [0.25, 0.75]]], np.float32))
    assert multi_categorical.sample(OPS, log_probs, np.array([[0.6, 0.2]], np.float32)).tolist() == [[1, 0]]
    assert multi_categorical.sample(OPS, log_probs, np.array([[0.4, 0.3]], np.float32)).tolist() == [[0, 1]]


def test_the_most_probable_choices_are_its_mode() -> None:
    log_probs = np.log(np.array([[[0.4, 0.6], [0.9, 0.1]]], np.float32))
    assert multi_categorical.mode(OPS, log_probs).tolist() == [[1, 0]]
