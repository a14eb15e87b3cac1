"""Rates of a measured window."""

from __future__ import annotations

import pytest

from rollstream_cli.errors import CellError
from rollstream_cli.measure import rates_between


def test_rates_are_differences_over_the_learners_own_time() -> None:
    before = {"wall_s": 10.0, "env_steps": 1_000, "env_steps_trained": 900, "updates": 10}
    after = {"wall_s": 14.0, "env_steps": 41_000, "env_steps_trained": 40_900, "updates": 50}
    assert rates_between(before, after) == {
        "window_s": 4.0,
        "env_steps_per_s": 10_000.0,
        "env_steps_trained_per_s": 10_000.0,
        "updates_per_s": 10.0,
    }


def test_a_window_without_reports_is_refused() -> None:
    with pytest.raises(CellError, match="the window holds no two reports of the learner; measure longer with --seconds"):
        rates_between({"wall_s": 3.0}, {"wall_s": 3.0})
