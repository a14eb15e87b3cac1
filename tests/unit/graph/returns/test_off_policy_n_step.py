"""n-step returns from steps of another policy, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import n_step_return
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.returns import off_policy_n_step_return

OPS = NumpyOps(dtype=np.float64)
REWARD, VALUE, NEXT_VALUE = np.array([1.0, 2.0, 3.0]), np.array([4.0, 2.0, 8.0]), np.array([2.0, 8.0, 16.0])
DISCOUNT, RATIO, GOES_ON = np.full(3, 0.5), np.array([2.0, 0.5, 1.0]), np.ones(3)


def test_each_step_is_weighted_and_what_the_weight_leaves_is_the_value() -> None:
    # one step: 2 * (1 + 1) - 1 * 4 = 0;  0.5 * (2 + 4) + 0.5 * 2 = 4;  3 + 8 = 11
    found = off_policy_n_step_return(OPS, REWARD, DISCOUNT, VALUE, NEXT_VALUE, RATIO, GOES_ON, steps=1)
    np.testing.assert_allclose(found, [0.0, 4.0, 11.0])
    # two steps: 2 * (1 + 0.5 * 4) - 4 = 2;  0.5 * (2 + 0.5 * 11) + 1 = 4.75
    found = off_policy_n_step_return(OPS, REWARD, DISCOUNT, VALUE, NEXT_VALUE, RATIO, GOES_ON, steps=2)
    np.testing.assert_allclose(found, [2.0, 4.75, 11.0])
    # more than there are: 2 * (1 + 0.5 * 4.75) - 4 = 2.75
    for steps in (3, 9):
        found = off_policy_n_step_return(OPS, REWARD, DISCOUNT, VALUE, NEXT_VALUE, RATIO, GOES_ON, steps=steps)
        np.testing.assert_allclose(found, [2.75, 4.75, 11.0])


def test_on_policy_it_is_the_n_step_return() -> None:
    for steps in (1, 2, 3):
        found = off_policy_n_step_return(OPS, REWARD, DISCOUNT, VALUE, NEXT_VALUE, np.ones(3), GOES_ON, steps=steps)
        np.testing.assert_allclose(found, n_step_return(OPS, REWARD, DISCOUNT, NEXT_VALUE, steps=steps))


def test_the_next_episode_does_not_count() -> None:
    goes_on = np.array([1.0, 0.0, 1.0])
    found = off_policy_n_step_return(OPS, REWARD, DISCOUNT, VALUE, NEXT_VALUE, RATIO, goes_on, steps=3)
    np.testing.assert_allclose(found, [2.0, 4.0, 11.0])  # row 1 is that of one step
    found = off_policy_n_step_return(OPS, REWARD, DISCOUNT * [1, 0, 1], VALUE, NEXT_VALUE, RATIO, goes_on, steps=3)
    np.testing.assert_allclose(found, [2.0 * (1.0 + 0.5 * 2.0) - 4.0, 0.5 * 2.0 + 1.0, 11.0])


def test_no_steps_are_refused() -> None:
    with pytest.raises(ConfigError, match="an off-policy n-step return needs steps >= 1, got 0"):
        off_policy_n_step_return(OPS, REWARD, DISCOUNT, VALUE, NEXT_VALUE, RATIO, GOES_ON, steps=0)
