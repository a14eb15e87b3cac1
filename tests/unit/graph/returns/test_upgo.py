"""UPGO, worked by hand."""

from __future__ import annotations

import numpy as np

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.returns import upgo_return

OPS = NumpyOps(dtype=np.float64)
REWARD, NEXT_VALUE = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 8.0])
DISCOUNT, GOES_ON = np.full(3, 0.5), np.ones(3)


def test_a_return_follows_the_trajectory_while_it_goes_as_well_as_expected() -> None:
    # step 2 gives 3 + 4 = 7 >= 7 expected: row 1 is 2 + 0.5 * 7 = 5.5; step 1 gives 2 + 2 = 4 < 5: row 0 is 1 + 0.5 * 2
    value = np.array([0.0, 5.0, 7.0])
    np.testing.assert_allclose(upgo_return(OPS, REWARD, DISCOUNT, value, NEXT_VALUE, GOES_ON), [2.0, 5.5, 7.0])


def test_it_stops_before_a_step_that_went_worse() -> None:
    # step 2 gives 7 < 7.5: row 1 is 2 + 0.5 * 4 = 4; step 1 gives 4 >= 4: row 0 is 1 + 0.5 * 4
    value = np.array([0.0, 4.0, 7.5])
    np.testing.assert_allclose(upgo_return(OPS, REWARD, DISCOUNT, value, NEXT_VALUE, GOES_ON), [3.0, 4.0, 7.0])


def test_the_next_episode_does_not_count() -> None:
    value, goes_on = np.zeros(3), np.array([1.0, 0.0, 1.0])
    np.testing.assert_allclose(upgo_return(OPS, REWARD, DISCOUNT, value, NEXT_VALUE, goes_on), [1.0 + 0.5 * 4.0, 4.0, 7.0])
    ended = np.array([0.5, 0.0, 0.5])
    np.testing.assert_allclose(upgo_return(OPS, REWARD, ended, value, NEXT_VALUE, goes_on), [1.0 + 0.5 * 2.0, 2.0, 7.0])
