"""Recorded transitions as rows."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.replay.offline import Transitions, rows_of
from rollstream.spaces import Column, Flag, RowSpec

END, CUT = Flag.FINAL | Flag.TERMINATED, Flag.FINAL | Flag.TRUNCATED


def recorded(count: int = 4, **changes: object) -> Transitions:
    columns = {
        "observation": np.arange(count * 2, dtype=np.float32).reshape(count, 2),
        "action": np.arange(count),
        "reward": np.arange(count, dtype=np.float64),
    }
    return Transitions(**{"source": "walk.npz", "columns": columns, **changes})  # type: ignore[arg-type]


def test_a_terminated_episode_gets_a_final_row_that_nothing_is_learned_from() -> None:
    rows = rows_of(recorded(terminated=np.array([False, True, False, True]))).rows
    assert rows["flags"].tolist() == [Flag.FIRST, 0, END, Flag.FIRST, 0, END]
    assert rows["action"].tolist() == [0, 1, 0, 2, 3, 0]
    assert rows["observation"][2].tolist() == [0.0, 0.0]
    assert rows["reward"].dtype == np.float32


def test_a_truncated_episode_ends_with_the_observation_that_followed() -> None:
    following = {"observation": np.full((4, 2), 9.0, np.float32)}
    rows = rows_of(recorded(truncated=np.array([0, 0, 0, 1]), following=following)).rows
    assert rows["flags"].tolist() == [Flag.FIRST, 0, 0, 0, CUT]
    assert rows["observation"][4].tolist() == [9.0, 9.0]


def test_without_what_followed_the_last_observation_of_a_truncated_episode_is_its_final_one() -> None:
    rows = rows_of(recorded(starts=np.array([0, 2]), terminated=np.array([0, 0, 0, 1]))).rows
    assert rows["flags"].tolist() == [Flag.FIRST, CUT, Flag.FIRST, 0, END]
    assert rows["observation"][1].tolist() == [2.0, 3.0]


def test_a_recording_without_episodes_is_rows_that_stand_for_themselves() -> None:
    data = rows_of(recorded())
    assert not data.episodic
    assert data.rows["flags"].tolist() == [Flag.FIRST, 0, 0, 0]


def test_an_episode_of_one_transition_is_kept_apart() -> None:
    data = rows_of(recorded(terminated=np.array([1, 1, 0, 1])))
    assert data.rows["flags"].tolist() == [Flag.FIRST, END, Flag.FIRST, END, Flag.FIRST, 0, END]
    assert data.episodes == 3


def test_float64_stays_unless_float32_is_asked_for() -> None:
    columns = {"state": np.zeros((3, 2)), "reward": np.zeros(3)}
    wide, narrow = (rows_of(Transitions(source="x", columns=columns), float32=asked).row_spec for asked in (False, True))
    assert [column.dtype for column in wide.columns] == ["<f8", "<f4"]
    assert [column.dtype for column in narrow.columns] == ["<f4", "<f4"]


def test_big_endian_arrays_are_stored_as_everything_else_is() -> None:
    data = rows_of(Transitions(source="x", columns={"action": np.arange(3, dtype=">i4")}))
    assert data.row_spec.columns[0].dtype == "<i4"
    assert data.rows["action"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": {}}, "has no column to store"),
        ({"terminated": np.zeros(3)}, "'terminated' has the shape \\[3\\] where 'observation' has 4 rows"),
        ({"following": {"observation": np.zeros((5, 2))}}, "'next_observation' has the shape \\[5, 2\\]"),
        ({"truncated": np.zeros((4, 1))}, "'truncated' must be one number a row, got the shape \\[4, 1\\]"),
        ({"starts": np.array([0, 3, 3])}, "starts of episodes must rise within 0..3, got 0..3"),
        ({"starts": np.array([0, 4])}, "starts of episodes must rise within 0..3, got 0..4"),
        ({"columns": {"action": np.array([None] * 4)}}, "column 'action' holds Python objects, which no table can"),
    ],
)
def test_an_array_that_does_not_fit_is_refused_by_its_name(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rows_of(recorded(**changes))


def spec(**columns: tuple[str, tuple[int, ...]]) -> RowSpec:
    return RowSpec(tuple(Column(name=name, dtype=dtype, shape=shape) for name, (dtype, shape) in columns.items()))


def test_rows_are_fitted_to_the_columns_of_a_table() -> None:
    wanted = spec(reward=("<f4", ()), action=("|u1", ()), observation=("<f2", (2,)))
    data = rows_of(recorded(terminated=np.array([0, 0, 0, 1]))).fitted(wanted)
    assert data.rows.dtype == wanted.dtype
    assert data.rows["action"].tolist() == [0, 1, 2, 3, 0]
    assert data.rows["flags"].tolist() == [Flag.FIRST, 0, 0, 0, END]
    assert data.fitted(wanted) is data


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (spec(observation=("<f4", (2,)), action=("<i8", ())), "has the column 'reward' which the table has not"),
        (
            spec(observation=("<f4", (2,)), action=("<i8", ()), reward=("<f4", ()), value=("<f4", ())),
            "lacks the column 'value' of the table; it has: observation, action, reward",
        ),
        (
            spec(observation=("<f4", (3,)), action=("<i8", ()), reward=("<f4", ())),
            r"column 'observation' has rows of shape \[2\] where \[3\] is expected",
        ),
        (
            spec(observation=("<i4", (2,)), action=("<i8", ()), reward=("<f4", ())),
            "column 'observation' holds float32, which int32 of the table cannot hold without loss",
        ),
    ],
)
def test_rows_that_a_table_cannot_hold_are_refused_by_column(wanted: RowSpec, message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        rows_of(recorded()).fitted(wanted)


def test_an_integer_that_does_not_fit_is_refused() -> None:
    data = rows_of(Transitions(source="x", columns={"action": np.array([1, 300])}))
    with pytest.raises(SchemaMismatch, match="cannot hold without loss"):
        data.fitted(spec(action=("|u1", ())))
