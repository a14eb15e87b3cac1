"""Generalized advantage estimation, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.graph import gae
from rollstream.graph.backends.numpy_ops import NumpyOps


def _gae(reward: list[float], discount: list[float], value: list[float], after: list[float], goes_on: list[float]) -> list[float]:
    series = [np.array(numbers, np.float32) for numbers in (reward, discount, value, after, goes_on)]
    flat = gae(NumpyOps(), *series, gae_lambda=0.5)
    matrix = gae(NumpyOps(), *(array[:, None] for array in series), gae_lambda=0.5)
    np.testing.assert_allclose(flat, matrix[:, 0], rtol=1e-6)
    return [float(number) for number in flat]


def test_errors_are_summed_with_discount_times_lambda() -> None:
    # gamma 0.5, lambda 0.5. delta = 1 + 0.5*2 - 1 = 1;  2 + 0.5*4 - 2 = 2;  3 + 0.5*8 - 4 = 3
    # advantage = 3;  2 + 0.25*3 = 2.75;  1 + 0.25*2.75 = 1.6875
    assert _gae([1, 2, 3], [0.5] * 3, [1, 2, 4], [2, 4, 8], [1, 1, 1]) == pytest.approx([1.6875, 2.75, 3.0])


def test_nothing_comes_after_a_termination() -> None:
    # row 1 terminates: delta = 2 - 2 = 0, whatever value and advantage follow
    assert _gae([1, 2, 3], [0.5, 0.0, 0.5], [1, 2, 4], [2, 99, 8], [1, 0, 1]) == pytest.approx([1.0, 0.0, 3.0])


def test_a_truncation_bootstraps_but_takes_nothing_from_the_next_episode() -> None:
    # row 1 is truncated with value 4 of its final observation: delta = 2 + 0.5*4 - 2 = 2, and no 0.25*3
    assert _gae([1, 2, 3], [0.5] * 3, [1, 2, 4], [2, 4, 8], [1, 0, 1]) == pytest.approx([1.5, 2.0, 3.0])
