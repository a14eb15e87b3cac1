"""n_step: numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.replay import n_step
from rollstream.spaces import Column, Flag, RowSpec

SPEC = RowSpec(
    (Column(name="observation", dtype="<f4", shape=(2,)), Column(name="action", dtype="<i8"), Column(name="reward", dtype="<f4"))
)


def run(rewards: list[float], *, flags_last: int = 0) -> np.ndarray:
    rows = np.zeros(len(rewards), SPEC.dtype)
    rows["reward"] = rewards
    rows["observation"] = np.arange(2 * len(rewards)).reshape(-1, 2)
    rows["action"] = np.arange(len(rewards)) + 10
    rows["flags"][-1] = flags_last
    return rows


def test_rewards_are_discounted_and_the_last_row_gives_the_bootstrap() -> None:
    columns = n_step(run([1.0, 2.0, 4.0, 100.0])[None], np.array([4]), discount=0.5)
    assert columns["reward"].tolist() == [1.0 + 1.0 + 1.0]
    assert columns["discount"].tolist() == [0.125]
    assert columns["observation"].tolist() == [[0.0, 1.0]]
    assert columns["next_observation"].tolist() == [[6.0, 7.0]]
    assert columns["action"].tolist() == [10]


def test_a_terminal_row_stops_bootstrapping_and_a_truncated_one_does_not() -> None:
    ends = [Flag.FINAL | Flag.TERMINATED, Flag.FINAL | Flag.TRUNCATED, Flag.FINAL | Flag.TERMINATED | Flag.TRUNCATED]
    rows = np.stack([run([3.0, 9.0], flags_last=int(end)) for end in ends])
    columns = n_step(rows, np.array([2, 2, 2]), discount=0.9)
    assert columns["discount"].tolist() == pytest.approx([0.0, 0.9, 0.0])
    assert columns["reward"].tolist() == [3.0, 3.0, 3.0]


def test_runs_of_different_lengths_stand_side_by_side() -> None:
    rows = np.zeros((2, 4), SPEC.dtype)
    rows[0], rows[1, :2] = run([1.0, 1.0, 1.0, 5.0]), run([7.0, 5.0])
    rows[1, 2:]["reward"] = np.nan
    columns = n_step(rows, np.array([4, 2]), discount=1.0)
    assert columns["reward"].tolist() == [3.0, 7.0]
    assert columns["next_observation"][1].tolist() == [2.0, 3.0]


def test_rows_without_reward_are_refused() -> None:
    rows = np.zeros((1, 2), np.dtype([("flags", "u1"), ("version", "<u4"), ("observation", "<f4")]))
    with pytest.raises(SchemaMismatch, match="n_step needs the columns reward and observation; the rows have: flags"):
        n_step(rows, np.array([2]), discount=1.0)
