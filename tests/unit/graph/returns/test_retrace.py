"""Retrace, worked by hand."""

from __future__ import annotations

import numpy as np

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.returns import lambda_return, retrace

OPS = NumpyOps(dtype=np.float64)
REWARD, Q, EXPECTED = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 5.0]), np.array([2.0, 4.0, 8.0])
DISCOUNT, RATIO, GOES_ON = np.full(3, 0.5), np.array([9.0, 0.5, 2.0]), np.ones(3)


def test_errors_reach_back_as_far_as_the_policies_agree() -> None:
    # 3 + 0.5 * 8 = 7;  2 + 0.5 * (4 + 1 * (7 - 5)) = 5;  1 + 0.5 * (2 + 0.5 * (5 - 3)) = 2.5
    np.testing.assert_allclose(retrace(OPS, REWARD, DISCOUNT, Q, EXPECTED, RATIO, GOES_ON), [2.5, 5.0, 7.0])


def test_lambda_shortens_the_trace_and_zero_is_expected_sarsa() -> None:
    # 2 + 0.5 * (4 + 0.5 * 2) = 4.5;  1 + 0.5 * (2 + 0.25 * 1.5) = 2.1875
    np.testing.assert_allclose(retrace(OPS, REWARD, DISCOUNT, Q, EXPECTED, RATIO, GOES_ON, lambda_=0.5), [2.1875, 4.5, 7.0])
    expected_sarsa = REWARD + DISCOUNT * EXPECTED
    np.testing.assert_allclose(retrace(OPS, REWARD, DISCOUNT, Q, EXPECTED, RATIO, GOES_ON, lambda_=0.0), expected_sarsa)


def test_the_next_episode_does_not_count() -> None:
    goes_on = np.array([1.0, 0.0, 1.0])
    # truncated: 2 + 0.5 * 4 = 4;  1 + 0.5 * (2 + 0.5 * (4 - 3)) = 2.25
    np.testing.assert_allclose(retrace(OPS, REWARD, DISCOUNT, Q, EXPECTED, RATIO, goes_on), [2.25, 4.0, 7.0])
    # terminated: 2;  1 + 0.5 * (2 + 0.5 * (2 - 3)) = 1.75
    ended = np.array([0.5, 0.0, 0.5])
    np.testing.assert_allclose(retrace(OPS, REWARD, ended, Q, EXPECTED, RATIO, goes_on), [1.75, 2.0, 7.0])


def test_on_policy_with_values_for_action_values_it_is_the_lambda_return() -> None:
    # q_(t+1) is the expectation of step t: then returns mix it and the next return
    q = np.array([0.0, 2.0, 4.0])
    found = retrace(OPS, REWARD, DISCOUNT, q, EXPECTED, np.ones(3), GOES_ON, lambda_=0.5)
    np.testing.assert_allclose(found, lambda_return(OPS, REWARD, DISCOUNT, EXPECTED, GOES_ON, lambda_=0.5))
