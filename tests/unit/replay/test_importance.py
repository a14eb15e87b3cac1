"""Importance weights: both normalizations by hand, and what must not happen."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.replay import importance_weights


def test_weights_of_a_batch_are_at_most_one() -> None:
    weights = importance_weights(np.array([0.5, 0.125]), 4, beta=1.0)
    assert weights.tolist() == [0.25, 1.0]


def test_equal_probabilities_give_weights_of_one() -> None:
    assert importance_weights(np.full(3, 1e-9), 10**9, beta=0.4).tolist() == [1.0, 1.0, 1.0]


def test_without_normalization_the_formula_stands_alone() -> None:
    assert importance_weights(np.array([0.5]), 8, beta=0.5, normalize="none").tolist() == [0.5]


def test_a_probability_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="importance weights need probabilities > 0, the smallest is 0"):
        importance_weights(np.array([0.5, 0.0]), 2, beta=1.0)


def test_an_empty_batch_has_no_weights() -> None:
    assert importance_weights(np.zeros(0), 5, beta=1.0).tolist() == []
