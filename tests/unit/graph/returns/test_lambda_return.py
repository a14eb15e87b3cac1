"""Lambda-returns, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.graph import gae
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.returns import lambda_return, td_lambda_error

OPS = NumpyOps(dtype=np.float64)
REWARD, NEXT_VALUE = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 8.0])
DISCOUNT, GOES_ON = np.full(3, 0.5), np.ones(3)


def _return(discount: np.ndarray = DISCOUNT, goes_on: np.ndarray = GOES_ON, *, lambda_: float = 0.5) -> list[float]:
    flat = lambda_return(OPS, REWARD, discount, NEXT_VALUE, goes_on, lambda_=lambda_)
    columns = [row[:, None] for row in (REWARD, discount, NEXT_VALUE, goes_on)]
    np.testing.assert_allclose(lambda_return(OPS, *columns, lambda_=lambda_)[:, 0], flat)
    return [float(number) for number in flat]


def test_returns_mix_the_next_value_and_the_next_return() -> None:
    # 3 + 0.5 * 8 = 7;  2 + 0.5 * (0.5 * 4 + 0.5 * 7) = 4.75;  1 + 0.5 * (0.5 * 2 + 0.5 * 4.75) = 2.6875
    assert _return() == pytest.approx([2.6875, 4.75, 7.0])


def test_lambda_zero_takes_one_step_and_one_takes_all() -> None:
    assert _return(lambda_=0.0) == pytest.approx([2.0, 4.0, 7.0])
    assert _return(lambda_=1.0) == pytest.approx([1.0 + 0.5 * 5.5, 2.0 + 0.5 * 7.0, 7.0])


def test_nothing_comes_after_a_termination() -> None:
    assert _return(np.array([0.5, 0.0, 0.5]), np.array([1.0, 0.0, 1.0])) == pytest.approx([1.0 + 0.5 * 2.0, 2.0, 7.0])


def test_a_truncation_bootstraps_but_takes_nothing_from_the_next_episode() -> None:
    # row 1: 2 + 0.5 * 4 = 4;  row 0: 1 + 0.5 * (0.5 * 2 + 0.5 * 4)
    assert _return(goes_on=np.array([1.0, 0.0, 1.0])) == pytest.approx([2.5, 4.0, 7.0])


def test_lambda_may_differ_from_step_to_step() -> None:
    # 2 + 0.5 * 7 = 5.5;  1 + 0.5 * 2
    found = lambda_return(OPS, REWARD, DISCOUNT, NEXT_VALUE, GOES_ON, lambda_=np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(found, [2.0, 5.5, 7.0])


def test_the_error_of_td_lambda_is_the_return_less_the_value_and_gae_where_values_are_of_one_network() -> None:
    value = np.array([10.0, 2.0, 4.0])  # value[t + 1] is next_value[t]
    error = td_lambda_error(OPS, REWARD, DISCOUNT, value, NEXT_VALUE, GOES_ON, lambda_=0.5)
    np.testing.assert_allclose(error, [2.6875 - 10.0, 4.75 - 2.0, 7.0 - 4.0])
    np.testing.assert_allclose(error, gae(OPS, REWARD, DISCOUNT, value, NEXT_VALUE, GOES_ON, gae_lambda=0.5))
