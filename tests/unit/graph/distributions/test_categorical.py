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
