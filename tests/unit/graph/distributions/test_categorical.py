"""The categorical distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.distributions import categorical

LOG_PROB = np.log(np.array([[0.2, 0.5, 0.3]], np.float32))


@pytest.mark.parametrize(("noise", "action"), [(0.0, 0), (0.19, 0), (0.21, 1), (0.69, 1), (0.71, 2), (0.9999999, 2)])
def test_noise_chooses_by_cumulated_probability(noise: float, action: int) -> None:
    assert categorical.sample(NumpyOps(), LOG_PROB, np.array([noise], np.float32)).tolist() == [action]


def test_actions_come_as_often_as_they_are_probable(generator: np.random.Generator) -> None:
    rows = 20_000
    drawn = categorical.sample(NumpyOps(), np.repeat(LOG_PROB, rows, 0), generator.random(rows, np.float32))
    np.testing.assert_allclose(np.bincount(drawn) / rows, [0.2, 0.5, 0.3], atol=0.015)


def test_entropy_is_that_of_two_coins_for_four_equal_choices() -> None:
    found = categorical.entropy(NumpyOps(), np.log(np.full((1, 4), 0.25, np.float32)))
    np.testing.assert_allclose(found, [2 * math.log(2)], rtol=1e-6)


def test_a_forbidden_choice_has_probability_zero_and_is_never_drawn() -> None:
    mask = np.array([[0, 1, 1, 0]], np.int8)
    logits = NumpyOps().log_softmax(categorical.masked(NumpyOps(), np.array([[9.0, 0.1, 0.0, 30.0]], np.float32), mask))
    assert np.exp(logits)[0, [0, 3]].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(np.exp(logits).sum(), 1.0, rtol=1e-6)
    highest = np.nextafter(np.float32(1), np.float32(0))
    noise = np.array([0.0, 0.5, 0.6, 0.9999999, highest], np.float32)
    drawn = categorical.sample(NumpyOps(), np.repeat(logits, len(noise), 0), noise)
    assert drawn.tolist() == [1, 1, 2, 2, 2]


@pytest.mark.parametrize("allowed", range(1, 12))
def test_the_highest_noise_never_draws_past_the_allowed_choices(allowed: int, generator: np.random.Generator) -> None:
    rows = 2_000
    mask = np.tile(np.arange(12) < allowed, (rows, 1))
    logits = categorical.masked(NumpyOps(), generator.standard_normal((rows, 12)).astype(np.float32), mask)
    highest = np.full(rows, np.nextafter(np.float32(1), np.float32(0)))
    assert categorical.sample(NumpyOps(), NumpyOps().log_softmax(logits), highest).max() < allowed


def test_entropy_under_a_mask_is_that_of_the_rest() -> None:
    logits = categorical.masked(NumpyOps(), np.zeros((1, 5), np.float32), np.array([[1, 0, 1, 1, 1]]))
    np.testing.assert_allclose(categorical.entropy(NumpyOps(), NumpyOps().log_softmax(logits)), [math.log(4)], rtol=1e-6)


def test_a_mask_that_forbids_everything_changes_nothing() -> None:
    logits = np.array([[1.0, 2.0], [1.0, 2.0]], np.float32)
    assert categorical.masked(NumpyOps(), logits, np.array([[0, 0], [1, 0]])).tolist() == [[1.0, 2.0], [1.0, -1e9]]


def test_divergence_is_worked_by_hand() -> None:
    p, q = np.log(np.array([[0.5, 0.5]], np.float32)), np.log(np.array([[0.25, 0.75]], np.float32))
    expected = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    np.testing.assert_allclose(categorical.kl(NumpyOps(), p, q), [expected], rtol=1e-6)
    np.testing.assert_allclose(categorical.kl(NumpyOps(), p, p), [0.0], atol=1e-7)
