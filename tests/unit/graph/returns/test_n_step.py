"""n-step returns, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import n_step_return
from rollstream.graph.backends.numpy_ops import NumpyOps

REWARD, DISCOUNT, VALUE = (np.array(numbers, np.float32) for numbers in ([1, 2, 3], [0.5, 0.5, 0.5], [10, 20, 40]))


def test_one_step_is_reward_and_discounted_value() -> None:
    assert n_step_return(NumpyOps(), REWARD, DISCOUNT, VALUE, steps=1).tolist() == [6, 12, 23]


def test_two_steps_and_fewer_at_the_end() -> None:
    # 1 + 0.5*(2 + 0.5*20) = 7;  2 + 0.5*(3 + 0.5*40) = 13.5;  3 + 0.5*40 = 23
    assert n_step_return(NumpyOps(), REWARD, DISCOUNT, VALUE, steps=2).tolist() == [7, 13.5, 23]


def test_more_steps_than_there_are_take_all() -> None:
    # 1 + 0.5*(2 + 0.5*(3 + 0.5*40)) = 7.75
    assert n_step_return(NumpyOps(), REWARD, DISCOUNT, VALUE, steps=9).tolist() == [7.75, 13.5, 23]


def test_nothing_beyond_an_end_counts() -> None:
    ended = np.array([0.5, 0.0, 0.5], np.float32)
    assert n_step_return(NumpyOps(), REWARD, ended, VALUE, steps=3).tolist() == [2, 2, 23]


def test_several_environments_stay_apart() -> None:
    found = n_step_return(NumpyOps(), *(np.stack([x, x * 2], 1) for x in (REWARD, DISCOUNT / 2, VALUE)), steps=2)
    assert found[:, 0].tolist() == n_step_return(NumpyOps(), REWARD, DISCOUNT / 2, VALUE, steps=2).tolist()


def test_no_steps_are_refused() -> None:
    with pytest.raises(ConfigError, match="an n-step return needs steps >= 1, got 0"):
        n_step_return(NumpyOps(), REWARD, DISCOUNT, VALUE, steps=0)
