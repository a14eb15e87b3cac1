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


def columns_of(rows: np.ndarray) -> dict[str, np.ndarray]:
    return {name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()}


def test_rewards_are_discounted_and_the_last_row_gives_the_bootstrap() -> None:
    columns = n_step(columns_of(run([1.0, 2.0, 4.0, 100.0])[None]), np.array([4]), discount=0.5)
    assert columns["reward"].tolist() == [1.0 + 1.0 + 1.0]
    assert columns["discount"].tolist() == [0.125]
    assert columns["observation"].tolist() == [[0.0, 1.0]]
    assert columns["next_observation"].tolist() == [[6.0, 7.0]]
    assert columns["action"].tolist() == [10]


def test_a_terminal_row_stops_bootstrapping_and_a_truncated_one_does_not() -> None:
    ends = [Flag.FINAL | Flag.TERMINATED, Flag.FINAL | Flag.TRUNCATED, Flag.FINAL | Flag.TERMINATED | Flag.TRUNCATED]
    rows = np.stack([run([3.0, 9.0], flags_last=int(end)) for end in ends])
    columns = n_step(columns_of(rows), np.array([2, 2, 2]), discount=0.9)
    assert columns["discount"].tolist() == pytest.approx([0.0, 0.9, 0.0])
    assert columns["reward"].tolist() == [3.0, 3.0, 3.0]


def test_runs_of_different_lengths_stand_side_by_side() -> None:
    rows = np.zeros((2, 4), SPEC.dtype)
    rows[0], rows[1, :2] = run([1.0, 1.0, 1.0, 5.0]), run([7.0, 5.0])
    rows[1, 2:]["reward"] = np.nan
    columns = n_step(columns_of(rows), np.array([4, 2]), discount=1.0)
    assert columns["reward"].tolist() == [3.0, 7.0]
    assert columns["next_observation"][1].tolist() == [2.0, 3.0]


def test_rows_without_reward_are_refused() -> None:
    rows = {"flags": np.zeros((1, 2), np.uint8), "observation": np.zeros((1, 2))}
    with pytest.raises(SchemaMismatch, match="n_step needs the columns flags, reward and observation; the rows have: flags, obs"):
        n_step(rows, np.array([2]), discount=1.0)


def test_lead_rows_are_left_out() -> None:
    rows = np.zeros((3, 5), SPEC.dtype)
    rows["flags"] = Flag.PAD
    rows[0, :5] = run([100.0, 100.0, 1.0, 2.0, 9.0], flags_last=int(Flag.FINAL | Flag.TERMINATED))
    rows[1, 1:4] = run([100.0, 3.0, 9.0])
    rows[2, 2:4] = run([5.0, 9.0])
    columns = columns_of(rows)
    for which in (slice(None), slice(1, 3), slice(2, 3)):  # parts of a sample keep the columns of the whole
        lengths, lead = np.array([5, 3, 2])[which], np.array([2, 1, 0])[which]
        part = n_step({name: column[which] for name, column in columns.items()}, lengths, discount=0.5, lead=lead)
        assert part["reward"].tolist() == [2.0, 3.0, 5.0][which]
        assert part["discount"].tolist() == [0.0, 0.5, 0.5][which]
        assert part["action"].tolist() == [12, 11, 10][which]
        assert part["next_observation"][:, 0].tolist() == [8.0, 4.0, 2.0][which]


def test_stacked_frames_are_a_column_as_any_other() -> None:
    columns = columns_of(run([1.0, 2.0, 4.0])[None])
    columns["observation"] = np.arange(12.0).reshape(1, 3, 2, 2)
    made = n_step(columns, np.array([3]), discount=1.0)
    assert made["observation"].tolist() == [[[0.0, 1.0], [2.0, 3.0]]]
    assert made["next_observation"].tolist() == [[[8.0, 9.0], [10.0, 11.0]]]


def test_no_items_are_no_transitions() -> None:
    made = n_step(columns_of(np.zeros((0, 0), SPEC.dtype)), np.zeros(0, np.int32), discount=0.9)
    assert all(len(column) == 0 for column in made.values())
