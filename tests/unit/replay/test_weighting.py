"""Importance weights as a setting of a client."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.replay.importance import BetaSchedule
from rollstream.replay.weighting import ImportanceWeights

PROBABILITY = np.array([0.5, 0.25])


def test_a_constant_beta_gives_every_batch_the_same_weights() -> None:
    weights = ImportanceWeights(beta=1.0)
    for _ in range(2):
        assert weights.of(PROBABILITY, table_items=4, min_probability=0.1).tolist() == [0.5, 1.0]


def test_a_schedule_goes_on_with_the_items_that_were_weighted() -> None:
    weights = ImportanceWeights(beta=BetaSchedule(start=0.0, end=1.0, over_samples=2))
    assert weights.of(PROBABILITY, table_items=4, min_probability=0.1).tolist() == [1.0, 1.0]
    assert weights.of(PROBABILITY, table_items=4, min_probability=0.1).tolist() == [0.5, 1.0]
    assert weights.samples == 4


def test_weights_over_the_table_need_its_rarest_item() -> None:
    weights = ImportanceWeights(beta=1.0, normalize="table")
    assert weights.of(PROBABILITY, table_items=4, min_probability=0.125).tolist() == [0.25, 0.5]


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="beta must be between 0 .corrects nothing. and 1 .everything., got 1.5"):
        ImportanceWeights(beta=1.5)
    with pytest.raises(ConfigError, match="normalize must be batch, table or none, got 'max'"):
        ImportanceWeights(normalize="max")  # type: ignore[arg-type]
