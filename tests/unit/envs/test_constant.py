"""Columns that never change are told, those that do are not."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest

from rollstream.envs.constant import ConstantColumns

Told = Callable[[], list[str]]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    caplog.set_level(logging.WARNING, "rollstream.envs")
    return lambda: [record.getMessage() for record in caplog.records]


def watch() -> ConstantColumns:
    return ConstantColumns(["still", "moving"], name="robot", after_steps=10)


def rollout(steps: int = 4) -> dict[str, np.ndarray]:
    return {"still": np.ones((steps + 1, 2, 3)), "moving": np.arange(2 * steps + 2).reshape(steps + 1, 2)}


def test_a_column_that_stands_still_is_told_once_after_as_many_steps(told: Told) -> None:
    watched, nothing = watch(), np.zeros((4, 2), np.bool_)
    for _ in range(2):
        watched.see(rollout(), done=nothing)
    assert told() == []
    for _ in range(3):
        watched.see(rollout(), done=nothing)
    assert len(told()) == 1
    assert "environment 'robot': still has not changed in any copy for 12 steps in a row" in told()[0]


def test_one_change_of_one_copy_starts_the_count_anew(told: Told) -> None:
    watched, nothing = watch(), np.zeros((4, 2), np.bool_)
    for _ in range(4):
        watched.see(rollout(), done=nothing)
        columns = rollout()
        columns["still"][3:, 1, 2] = 2.0
        watched.see(columns, done=nothing)
    assert told() == []


def test_changes_at_the_end_of_an_episode_are_no_sign_of_life(told: Told) -> None:
    watched, done = watch(), np.zeros((4, 2), np.bool_)
    done[1, 0] = True
    for _ in range(3):
        columns = rollout()
        columns["still"][2, 0] = 5.0  # the final observation, then (one step later) the first of the next episode
        columns["still"][3:, 0] = 6.0
        watched.see(columns, done=done)
    assert len(told()) == 1
