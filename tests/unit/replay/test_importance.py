"""Importance weights: all normalizations by hand, the schedule of beta, and what must not happen."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.replay.importance import BetaSchedule, importance_weights, rarest


def test_weights_of_a_batch_are_at_most_one() -> None:
    weights = importance_weights(np.array([0.5, 0.125]), 4, beta=1.0)  # 1 / 2 and 1 / 0.5, over 2
    assert weights.tolist() == [0.25, 1.0]


def test_weights_of_a_table_are_those_of_its_rarest_item_at_most() -> None:
    probability = np.array([0.5, 0.125, 0.03125])
    weights = importance_weights(probability, 4, beta=0.5, normalize="table", min_probability=0.03125)
    assert weights.tolist() == [0.25, 0.5, 1.0]  # (0.03125 / 0.5) ** 0.5 = 0.25
    alone = importance_weights(probability[:1], 4, beta=0.5, normalize="table", min_probability=0.03125)
    assert alone.tolist() == [0.25]  # the same in every batch, whatever N is


def test_an_item_that_became_rarer_than_the_rarest_has_weight_one() -> None:
    assert importance_weights(np.array([0.01]), 4, beta=1.0, normalize="table", min_probability=0.02).tolist() == [1.0]


def test_weights_of_a_table_need_its_smallest_probability() -> None:
    for smallest in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(ConfigError, match="normalize='table' needs the smallest probability of the table, got"):
            importance_weights(np.array([0.5]), 4, beta=1.0, normalize="table", min_probability=smallest)


def test_equal_probabilities_give_weights_of_one() -> None:
    equal = np.full(3, 1e-9)
    assert importance_weights(equal, 10**9, beta=0.4).tolist() == [1.0, 1.0, 1.0]
    assert importance_weights(equal, 10**9, beta=0.4, normalize="table", min_probability=1e-9).tolist() == [1.0, 1.0, 1.0]


def test_without_normalization_the_formula_stands_alone() -> None:
    assert importance_weights(np.array([0.5]), 8, beta=0.5, normalize="none").tolist() == [0.5]
    assert importance_weights(np.array([0.0625]), 4, beta=0.5, normalize="none").tolist() == [2.0]


def test_beta_zero_corrects_nothing() -> None:
    for normalize in ("batch", "none"):
        assert importance_weights(np.array([0.9, 0.01]), 8, beta=0.0, normalize=normalize).tolist() == [1.0, 1.0]


def test_a_probability_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="importance weights need probabilities > 0, the smallest is 0"):
        importance_weights(np.array([0.5, 0.0]), 2, beta=1.0)


def test_an_empty_batch_has_no_weights() -> None:
    assert importance_weights(np.zeros(0), 5, beta=1.0).tolist() == []
    assert importance_weights(np.zeros(0), 5, beta=1.0, normalize="table", min_probability=0.5).tolist() == []


def test_beta_grows_in_a_straight_line_and_stays_at_its_end() -> None:
    schedule = BetaSchedule(start=0.25, end=1.0, over_samples=300)
    assert [schedule.at(samples) for samples in (-5, 0, 100, 200, 300, 10**9)] == [0.25, 0.25, 0.5, 0.75, 1.0, 1.0]
    falling = BetaSchedule(start=1.0, end=0.5, over_samples=10)
    assert falling.at(5) == 0.75


def test_schedules_outside_of_zero_to_one_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"a beta schedule runs between 0 \(corrects nothing\) and 1, got start -0.5 and end 1"):
        BetaSchedule(start=-0.5, end=1.0, over_samples=10)
    with pytest.raises(ConfigError, match="got start 0.4 and end 1.5"):
        BetaSchedule(start=0.4, end=1.5, over_samples=10)
    with pytest.raises(ConfigError, match="over_samples must be at least 1, got 0; for a constant beta let start be end"):
        BetaSchedule(over_samples=0)


def test_the_rarest_item_of_a_table_is_that_of_the_shard_where_it_is_rarest() -> None:
    assert rarest([0.75, 0.25, 0.0], [0.1, 0.2, 0.5]) == pytest.approx(0.05)
    assert rarest([1.0], [0.125]) == 0.125
    assert rarest([0.5, 0.5], [0.0, 0.0]) == 0.0  # no shard tells
    assert rarest([], []) == 0.0


def test_a_shard_whose_items_have_no_weight_has_no_rarest_item() -> None:
    assert rarest([1.0, 2e-250], [0.125, 0.5]) == 0.125
