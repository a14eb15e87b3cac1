"""V-trace, worked by hand."""

from __future__ import annotations

import numpy as np

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.returns import lambda_return, n_step_return, vtrace

OPS = NumpyOps(dtype=np.float64)
REWARD, VALUE, NEXT_VALUE = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0])
DISCOUNT, RATIO, GOES_ON = np.full(3, 0.5), np.array([2.0, 0.5, 1.5]), np.ones(3)


def test_ratios_are_clipped_and_errors_reach_back() -> None:
    found = vtrace(OPS, REWARD, DISCOUNT, VALUE, NEXT_VALUE, RATIO, GOES_ON)
    # ratios 1, 0.5, 1.  deltas: 1 + 1 - 1 = 1;  0.5 * (2 + 2 - 2) = 1;  3 + 4 - 4 = 3
    # errors: 3;  1 + 0.5 * 0.5 * 3 = 1.75;  1 + 0.5 * 1 * 1.75 = 1.875
    np.testing.assert_allclose(found.target, [2.875, 3.75, 7.0])
    # 1 + 0.5 * 3.75 - 1;  0.5 * (2 + 0.5 * 7 - 2);  3 + 0.5 * 8 - 4
    np.testing.assert_allclose(found.advantage, [1.875, 1.75, 3.0])


def test_each_clip_has_its_place() -> None:
    found = vtrace(
        OPS, REWARD, DISCOUNT, VALUE, NEXT_VALUE, RATIO, GOES_ON, lambda_=0.5, rho_clip=3.0, c_clip=1.25, advantage_rho_clip=1.75
    )
    # deltas with ratios 2, 0.5, 1.5: 2, 1, 4.5; traces 0.5 * 0.5 * (1.25, 0.5, 1.25)
    # errors: 4.5;  1 + 0.125 * 4.5 = 1.5625;  2 + 0.3125 * 1.5625 = 2.48828125
    np.testing.assert_allclose(found.target, [3.48828125, 3.5625, 8.5])
    # 1.75 * (1 + 0.5 * 3.5625 - 1);  0.5 * (2 + 0.5 * 8.5 - 2);  1.5 * (3 + 4 - 4)
    np.testing.assert_allclose(found.advantage, [1.75 * 1.78125, 2.125, 4.5])


def test_a_truncation_bootstraps_but_takes_nothing_from_the_next_episode() -> None:
    found = vtrace(OPS, REWARD, DISCOUNT, VALUE, NEXT_VALUE, RATIO, np.array([1.0, 0.0, 1.0]))
    # errors: 3; 1; 1 + 0.5 * 1
    np.testing.assert_allclose(found.target, [2.5, 3.0, 7.0])
    np.testing.assert_allclose(found.advantage, [0.5 * 3.0, 0.5 * (2.0 + 0.5 * 4.0 - 2.0), 3.0])


def test_nothing_comes_after_a_termination() -> None:
    found = vtrace(OPS, REWARD, np.array([0.5, 0.0, 0.5]), VALUE, np.array([2.0, 99.0, 8.0]), RATIO, np.array([1.0, 0.0, 1.0]))
    # deltas 1, 0, 3
    np.testing.assert_allclose(found.target, [2.0, 2.0, 7.0])
    np.testing.assert_allclose(found.advantage, [1.0, 0.0, 3.0])


def test_on_policy_targets_are_lambda_returns_and_with_lambda_one_n_step_returns() -> None:
    ones = np.ones(3)
    value = np.array([7.0, 2.0, 4.0])  # value[t + 1] is next_value[t]
    for lambda_ in (0.0, 0.5, 1.0):
        found = vtrace(OPS, REWARD, DISCOUNT, value, NEXT_VALUE, ones, GOES_ON, lambda_=lambda_).target
        np.testing.assert_allclose(found, lambda_return(OPS, REWARD, DISCOUNT, NEXT_VALUE, GOES_ON, lambda_=lambda_))
    np.testing.assert_allclose(found, n_step_return(OPS, REWARD, DISCOUNT, NEXT_VALUE, steps=3))
