"""Steps on their way into rows: columns that fit, episodes that end, partial steps, some environments only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.replay.step_buffer import StepBuffer
from rollstream.replay.step_layout import StepLayout, infer_rows
from rollstream.spaces import Column, Flag, RowSpec, optional, ragged

ROWS = RowSpec((Column(name="observation", dtype="<f4", shape=(2,)), Column(name="action", dtype="<i8")))
RICH = RowSpec(
    (
        Column(name="observation.pose", dtype="<f4", shape=(2,)),
        *ragged(Column(name="tokens", dtype="<i4", shape=(3,))),
        *optional(Column(name="goal", dtype="<f4")),
    )
)
ENDS = {Flag.FINAL | Flag.TERMINATED: "E", Flag.FINAL | Flag.TRUNCATED: "T", Flag.FIRST: "f", Flag(0): "."}


def step(number: float, *, environments: int = 3) -> dict[str, Any]:
    return {
        "observation": np.full((environments, 2), number, np.float32) + np.arange(environments)[:, None] / 10,
        "action": np.full(environments, int(number)),
    }


def buffer(rows: RowSpec = ROWS, *, environments: int = 3, capacity: int = 8) -> StepBuffer:
    return StepBuffer(rows, environments=environments, capacity=capacity)


def letters(made: StepBuffer) -> list[str]:
    """Flags of the rows of each environment, as letters."""
    steps = made.take()
    found = "".join(ENDS[Flag(int(flag))] for flag in steps.rows["flags"])
    return [found[start:end] for start, end in zip(steps.offsets[:-1], steps.offsets[1:], strict=True)]


def everybody(count: int = 3) -> np.ndarray:
    return np.arange(count)


# --- columns ------------------------------------------------------------------------------------------------------------


def test_nested_steps_become_columns_with_dotted_names() -> None:
    pose = np.ones((2, 2), np.float32)
    columns = StepLayout(RICH).read({"observation": {"pose": pose}, "tokens": [[1, 2], []]}, count=2)
    assert columns["observation.pose"] is pose
    assert columns["tokens"].tolist() == [[1, 2, 0], [0, 0, 0]]
    assert columns["tokens.length"].tolist() == [2, 0]


def test_an_optional_column_says_whether_it_is_there() -> None:
    layout = StepLayout(RICH)
    columns = layout.read({"goal": np.ones(2)}, count=2)
    assert columns["goal.present"].tolist() == [1, 1]
    assert layout.required == {"observation.pose", "tokens"}
    assert layout.absent({}) == ["goal", "goal.present"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"observation": np.zeros((3, 3), np.float32)},
            r"column observation: expected entries of float32\[2\], got float32\[3\]",
        ),
        ({"observation": np.zeros((2, 2))}, r"column observation: expected 3 entries, one for each environment, got .* \[2, 2\]"),
        ({"action": np.full(3, 0.5)}, "column action: expected numbers of int64, got float64 that do not fit without loss"),
        ({"speed": np.zeros(3)}, "the step has a column 'speed', the rows have: observation, action"),
        ({"observation": [[1, 2], [3], [4, 5]]}, r"column observation: its entries differ in shape .* give one array \[3, ...\]"),
    ],
)
def test_a_column_that_does_not_fit_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        StepLayout(ROWS).read(given, count=3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tokens": [[1, 2, 3, 4], []]}, "column tokens: a step holds at most 3 entries, got 4"),
        ({"tokens": [[1]]}, "column tokens: expected 2 lists, one for each environment, got 1"),
        ({"tokens": [[0.5], [1]]}, "column tokens: expected numbers of int32, got float64"),
    ],
)
def test_lists_that_do_not_fit_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        StepLayout(RICH).read(given, count=2)


def test_numbers_are_cast_when_nothing_is_lost_but_precision() -> None:
    rows = RowSpec((Column(name="small", dtype="|u1"), Column(name="single", dtype="<f4")))
    made = buffer(rows, environments=2)
    made.add({"small": np.array([3, 255]), "single": np.array([0.1, 0.2])}, which=None, version=0)
    taken = made.take().rows
    assert taken["small"].tolist() == [3, 255]
    assert taken["single"].tolist() == pytest.approx([0.1, 0.2])
    with pytest.raises(SchemaMismatch, match="column small: expected numbers of uint8, got int64 that do not fit"):
        made.add({"small": np.array([3, 256]), "single": np.zeros(2)}, which=None, version=0)


def test_columns_can_be_inferred_from_a_step() -> None:
    rows = infer_rows({"observation": {"image": np.zeros((4, 8, 8), np.uint8)}, "reward": np.zeros(4, ">f4")})
    assert [(column.name, column.dtype, column.shape) for column in rows.columns] == [
        ("observation.image", "|u1", (8, 8)),
        ("reward", "<f4", ()),
    ]
    with pytest.raises(SchemaMismatch, match=r"column a.b: expected an array of numbers \[N, ...\], got float64 of shape \[\]"):
        infer_rows({"a": {"b": 1.0}})


# --- rows ---------------------------------------------------------------------------------------------------------------


def test_steps_become_rows_environment_after_environment() -> None:
    made = buffer()
    for number in range(3):
        made.add(step(number), which=None, version=number)
    taken = made.take()
    assert letters(made) == ["f..", "f..", "f.."]
    assert taken.rows["action"].tolist() == [0, 1, 2] * 3
    assert taken.rows["version"].tolist() == [0, 1, 2] * 3
    assert taken.rows["observation"][5].tolist() == pytest.approx([2.1, 2.1])
    assert taken.offsets.tolist() == [0, 3, 6, 9]


def test_a_full_buffer_is_given_away_without_a_copy() -> None:
    made = buffer(capacity=2)
    for number in range(2):
        made.add(step(number), which=None, version=0)
    assert not made.has_room(1)
    assert np.shares_memory(made.take().rows, made._rows)


def test_an_episode_ends_with_a_row_of_its_final_observation() -> None:
    made = buffer()
    made.add(step(0), which=None, version=0)
    final = {"observation": np.full((2, 2), 9.0)}
    made.finish(np.array([0, 2]), terminated=np.array([True, False]), final=final, version=4)
    made.add(step(1), which=None, version=0)
    assert letters(made) == ["fEf", "f.", "fTf"]
    rows = made.take().rows
    assert (rows["observation"][1].tolist(), rows["action"][1], rows["version"][1]) == ([9.0, 9.0], 0, 4)
    assert made.episode_begin.tolist() == [2, 0, 2]


def test_a_terminated_episode_without_a_final_observation_gets_zeros_and_a_truncated_one_is_cut() -> None:
    made = buffer(capacity=4)
    for _ in range(2):  # the second time over memory that was used before
        made.add(step(5), which=None, version=3)
        made.finish(everybody(2), terminated=np.array([True, False]), final=None, version=3)
        assert letters(made)[0] == "fE"
        assert made.take().rows["observation"][1].tolist() == [0.0, 0.0]
        made.clear()
    made.add(step(6), which=None, version=3)
    assert letters(made) == ["f", "f", "."]


def test_environments_without_an_episode_have_none_to_end() -> None:
    made = buffer()
    made.finish(everybody(), terminated=np.ones(3, np.bool_), final=None, version=0)
    assert letters(made) == ["", "", ""]


def test_some_environments_may_step_alone() -> None:
    made = buffer()
    made.add(step(0), which=None, version=0)
    made.add(step(1), which=np.array([1]), version=0)
    made.add({name: value[:2] for name, value in step(2).items()}, which=np.array([0, 2]), version=0)
    taken = made.take()
    assert taken.offsets.tolist() == [0, 2, 4, 6]
    assert taken.rows["action"].tolist() == [0, 2, 0, 1, 0, 2]
    assert taken.rows["observation"][3].tolist() == pytest.approx([1.1, 1.1])
    assert taken.rows["observation"][5].tolist() == pytest.approx([2.1, 2.1])
    assert made.rows == 6


def test_a_step_may_come_in_parts() -> None:
    made = buffer()
    made.add_partial({"observation": step(0)["observation"]}, which=None)
    assert made.rows == 0
    made.add({"action": np.arange(3)}, which=None, version=0)
    made.add(step(1), which=None, version=0)
    assert letters(made) == ["f.", "f.", "f."]
    assert made.take().rows["action"].tolist() == [0, 1, 1, 1, 2, 1]


def test_partial_steps_survive_that_rows_are_given_away_and_become_final_rows() -> None:
    made = buffer(capacity=2)
    made.add(step(0), which=None, version=0)
    made.add_partial({"observation": np.full((1, 2), 7.0)}, which=np.array([1]))
    made.clear()
    made.finish(everybody(), terminated=np.zeros(3, np.bool_), final=None, version=0)
    assert letters(made) == ["", "T", ""]
    assert made.take().rows["observation"].tolist() == [[7.0, 7.0]]


def test_parts_of_a_step_must_be_complete_and_new() -> None:
    made = buffer()
    with pytest.raises(SchemaMismatch, match="the step lacks the columns action; give them, or say partial=True"):
        made.add({"observation": step(0)["observation"]}, which=None, version=0)
    made.add_partial({"observation": step(0)["observation"][:1]}, which=np.array([2]))
    with pytest.raises(SchemaMismatch, match="column observation of environment 2 was given twice for one step"):
        made.add(step(0), which=None, version=0)
    with pytest.raises(SchemaMismatch, match="the step lacks the column observation of environment 0, also among its partial"):
        made.add({"action": np.arange(3)}, which=None, version=0)


def test_columns_that_a_step_leaves_out_are_zeros_where_rows_stood_before() -> None:
    made = buffer(RICH, environments=2, capacity=2)
    full = {"observation": {"pose": np.ones((2, 2))}, "tokens": [[1], [2, 3]], "goal": np.ones(2)}
    made.add(full, which=None, version=0)
    made.clear()
    made.add({name: full[name] for name in ("observation", "tokens")}, which=None, version=0)
    made.add({name: full[name] for name in ("observation", "tokens")}, which=np.array([0]), version=0)
    rows = made.take().rows
    assert rows["goal"].tolist() == [0, 0, 0]
    assert rows["goal.present"].tolist() == [0, 0, 0]
    assert rows["tokens"].tolist() == [[1, 0, 0], [1, 0, 0], [2, 3, 0]]
