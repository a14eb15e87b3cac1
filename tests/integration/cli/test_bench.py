"""`rollstream bench train` prints what comparisons need."""

from __future__ import annotations

from typing import Any


def test_a_measurement_has_rates_costs_and_the_time_to_the_first_update(shell: Any) -> None:
    measured = shell.json("bench", "train", "--algo", "ppo", "--seconds", "3", "--warm-up", "0", "--json", "-")
    assert measured["env_steps_per_s"] > 0.0
    assert measured["env_steps_trained_per_s"] > 0.0
    assert measured["updates_per_s"] > 0.0
    assert measured["start_to_first_update_s"] > 0.0
    assert measured["cores_used"] > 0.0
    assert measured["rss_total_mb"] >= measured["rss_mb"]["learner-0"]
    assert measured["window_s"] > 0.0
    assert shell.runs == []
