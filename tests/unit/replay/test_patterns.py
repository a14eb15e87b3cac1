"""Patterns: slices of columns relative to the newest step, and when they are applied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError, NonFiniteError, SchemaMismatch, TableError
from rollstream.replay import Pattern, TdMix, by_table, condition, pattern_items, pattern_table, step
from rollstream.replay.open_steps import ItemRuns, OpenSteps
from rollstream.replay.view import viewed
from rollstream.spaces import Column, Flag, RowSpec

FLAGS = {"f": Flag.FIRST, ".": 0, "E": Flag.FINAL | Flag.TERMINATED, "p": Flag.PAD}
ACTION = {"action": step["action"][-1]}
OBSERVATION = {"observation": step["observation"][-1]}


def rows(*environments: str, closing: bool = False, **columns: Any) -> OpenSteps:
    lengths = np.array([len(rows) for rows in environments])
    return OpenSteps(
        columns={"flags": np.array([FLAGS[letter] for letter in "".join(environments)], np.uint8), **columns},
        offsets=np.cumsum([0, *lengths]),
        fresh=lengths,
        before=np.zeros(len(lengths), np.int64),
        closing=closing,
    )


def newest(pattern: Pattern, steps: OpenSteps) -> list[int]:
    """Rows at which the pattern is applied."""
    runs: ItemRuns = pattern.items(steps)
    return (steps.offsets[runs.env] + runs.start + pattern.rows_needed - 1).tolist()


def test_slices_are_those_of_python_lists() -> None:
    history = list(range(10))
    for place in (slice(-3, None), slice(-5, -1), slice(-6, -1, 2), slice(-4, None, 3)):
        assert [history[at] for at in step["x"][place].places] == history[place]
    assert step["x"][-2].places == (-2,)
    assert step["x"][[-4, -1]].places == (-4, -1)
    assert step["a"]["b"][-1].column == "a.b"
    assert repr(step["x"][-6:-1:2]) == "step['x'][-6:-1:2]"
    assert repr(step["x"][[-4, -1]]) == "step['x'][[-4, -1]]"


@pytest.mark.parametrize("place", [slice(None), slice(0, None), slice(-1, -3), slice(-3, None, -1), slice(-3, 2)])
def test_slices_that_do_not_count_from_the_newest_step_are_refused(place: slice) -> None:
    with pytest.raises(ConfigError, match="a slice starts below 0, ends below 0 or at the newest step"):
        step["x"][place]


def test_places_that_do_not_count_from_the_newest_step_are_refused() -> None:
    with pytest.raises(ConfigError, match="steps are counted back from the newest, which is -1; give numbers below 0"):
        step["x"][0]
    with pytest.raises(ConfigError, match="name a column first, e.g. step"):
        step[-1]
    with pytest.raises(ConfigError, match="pattern column 'a.b' must be a slice of a step's column"):
        Pattern({"a": {"b": step["x"]}})
    with pytest.raises(ConfigError, match="a pattern takes at least one column, got none"):
        Pattern({})
    with pytest.raises(ConfigError, match="pattern conditions are comparisons such as condition.step_index >= 3"):
        Pattern(ACTION, conditions=[condition.step_index])  # type: ignore[list-item]
    with pytest.raises(TableError, match="priorities must be finite and >= 0"):
        Pattern(ACTION, priority=-1.0)


def test_an_item_is_the_run_from_the_oldest_step_taken_to_the_newest() -> None:
    pattern = Pattern({"window": step["observation"][-4:-1], "action": step["action"][-2]})
    runs = pattern.items(rows("f.....", "f.."))
    assert runs.start.tolist() == [0, 1, 2]
    assert runs.length.tolist() == [3, 3, 3]
    assert runs.keep.tolist() == [2, 0]
    assert [(view.name, view.places) for view in pattern.view] == [("window", (-3, -2, -1)), ("action", (-1,))]


def test_a_sample_through_the_view_is_what_the_pattern_took() -> None:
    pattern = Pattern(
        {
            "ends": step["value"][[-5, -2]],
            "every_other": step["value"][-5:-1:2],
            "rest": {"last": step["value"][-2]},
        }
    )
    runs = pattern.items(rows("f.......", value=np.arange(8)))
    item = runs.start[2] + np.arange(runs.length[2])
    columns = {"flags": item[None], "version": item[None], "value": item[None]}
    seen = viewed(columns, pattern.view, end=np.array([len(item)]))
    assert newest(pattern, rows("f......."))[2] == 6
    assert seen["ends"].tolist() == [[2, 5]]
    assert seen["every_other"].tolist() == [[2, 4]]
    assert seen["rest.last"].tolist() == [5]


def test_a_pattern_that_needs_more_steps_than_an_episode_has_is_not_applied() -> None:
    assert newest(Pattern({"observation": step["observation"][-3:]}), rows("fEf.E")) == [4]


def test_a_final_row_is_a_step_for_observations_only() -> None:
    assert newest(Pattern(OBSERVATION), rows("f.E")) == [0, 1, 2]
    assert newest(Pattern(ACTION), rows("f.E")) == [0, 1]
    assert newest(Pattern({"action": step["action"][-2], "next": step["observation"][-1]}), rows("f.E")) == [1, 2]
    assert newest(Pattern({"a": step["goal"][-1]}, final_columns=("observation", "goal")), rows("f.E")) == [0, 1, 2]
    assert newest(Pattern(OBSERVATION), rows("f.Epp")) == [0, 1, 2]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([condition.step_index >= 3], [3, 4, 5, 10]),
        ([condition.step_index < 2], [0, 1, 7, 8]),
        ([condition.step_index % 3 == 1], [1, 4, 8]),
        ([condition.step_index % 2 != 0], [1, 3, 5, 8, 10]),
        ([condition.buffer_length == 2], [1, 8]),
        ([condition.step_index > 1, condition.step_index <= 3], [2, 3, 9, 10]),
        ([condition.steps_since_applied >= 2], [1, 3, 5, 8, 10]),
        ([condition.steps_since_applied >= 2, condition.step_index != 3], [1, 4, 8]),
        ([condition.steps_since_applied == 4], [3, 10]),
        ([condition.data("good") == True], [2, 4, 9]),  # noqa: E712
        ([condition.data("good") == 0, condition.step_index >= 4], [5]),
        ([condition.is_end_episode == False, condition.step_index >= 4], [4, 5]),  # noqa: E712
    ],
)
def test_conditions_choose_steps(conditions: Any, expected: list[int]) -> None:
    good = np.zeros(11, np.bool_)
    good[[2, 4, 9]] = True
    assert newest(Pattern(ACTION, conditions=conditions), rows("f.....Ef...", good=good)) == expected


def test_a_pattern_may_be_applied_at_the_ends_of_episodes_only() -> None:
    end = [condition.is_end_episode == True]  # noqa: E712
    assert newest(Pattern(ACTION, conditions=end), rows("f..Ef.")) == [2]
    assert newest(Pattern(OBSERVATION, conditions=end), rows("f..Ef.")) == [3]
    assert newest(Pattern(ACTION, conditions=end), rows("f..f.")) == [2]
    assert newest(Pattern(ACTION, conditions=end), rows("f..f.", closing=True)) == [2, 4]
    assert newest(Pattern(ACTION, conditions=[*end, condition.steps_since_applied >= 3]), rows("f..Ef.E")) == [2]


def test_steps_since_applied_are_counted_over_flushes() -> None:
    pattern = Pattern(ACTION, conditions=[condition.steps_since_applied >= 3])
    first = rows("f.", "f...")
    state = pattern.items(first).state
    assert state is not None
    assert state.tolist() == [2, 1]
    second = OpenSteps(
        columns={"flags": np.zeros(4, np.uint8)},
        offsets=np.array([0, 2, 4]),
        fresh=np.array([2, 2]),
        before=np.array([2, 4]),
    )
    assert newest(pattern, second.with_state(state)) == [0, 3]


def test_conditions_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="condition on step_index: % takes one number >= 1, got 0"):
        condition.step_index % 0
    with pytest.raises(ConfigError, match="condition on data: compare with a whole number or a bool, got 0.5"):
        assert condition.data("reward") > 0.5  # type: ignore[operator]
    assert repr(condition.data("goal") % 2 == 1) == "Condition(data('goal') % 2 == 1)"


def test_priorities_are_constant_or_a_mix_over_the_steps_taken_of_the_column() -> None:
    error = np.array([1.0, -2.0, 4.0, 3.0], np.float32)
    assert Pattern(ACTION, priority=2.0).items(rows("f.")).priority.tolist() == [2.0, 2.0]  # type: ignore[union-attr]
    taken = Pattern({"td": step["td"][-3:-1], "observation": step["observation"][-1]}, priority=TdMix("td", eta=0.5))
    assert taken.items(rows("f...", td=error)).priority == pytest.approx([0.5 * 2 + 0.5 * 1.5, 0.5 * 4 + 0.5 * 3])
    run = Pattern({"observation": step["observation"][-2:]}, priority=TdMix("td", eta=1.0))
    assert run.items(rows("f...", td=error)).priority == pytest.approx([2, 4, 4])
    with pytest.raises(NonFiniteError, match="has a NaN or an infinity"):
        run.items(rows("f.", td=np.array([0, np.nan])))


def test_a_pattern_runs_over_recorded_episodes() -> None:
    columns = {"observation": np.arange(14).reshape(7, 2), "action": np.arange(7), "td": np.ones(7)}
    pattern = Pattern(
        {"observation": step["observation"][-2:], "action": step["action"][-1]},
        priority=TdMix("td"),
        conditions=[condition.step_index % 2 == 1],
    )
    items = pattern_items(pattern, columns, np.array([0, 4, 7]))
    assert items.newest.tolist() == [1, 3, 5]
    assert items.columns["action"].tolist() == [1, 3, 5]
    assert items.columns["observation"].tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    assert items.priority == pytest.approx([1, 1, 1])
    with pytest.raises(SchemaMismatch, match="the pattern takes the columns td, given are: action, observation"):
        pattern_items(pattern, {name: columns[name] for name in ("observation", "action")}, np.array([0, 7]))


def test_a_pattern_may_have_history_for_stacked_columns() -> None:
    runs = Pattern({"pair": step["observation"][-2:]}, history=2).items(rows("f....", "f."))
    assert (runs.start.tolist(), runs.length.tolist()) == ([0, 0, 0, 1, 0], [2, 3, 4, 4, 2])
    assert runs.lead is not None
    assert runs.lead.tolist() == [0, 1, 2, 2, 0]
    assert runs.keep.tolist() == [1, 0]
    with pytest.raises(ConfigError, match="Pattern: history must be >= 0, got -1"):
        Pattern(ACTION, history=-1)


def test_patterns_can_be_given_as_a_list_that_says_for_which_table_each_is() -> None:
    one, two = Pattern(ACTION, table="a"), Pattern(OBSERVATION, table="a")
    assert by_table([one, Pattern(ACTION, table="b"), two])["a"] == [one, two]
    with pytest.raises(ConfigError, match="pattern of action does not say for which table it is; give it table=..."):
        by_table([Pattern(ACTION)])


def test_the_spec_of_a_patterns_table_has_its_view() -> None:
    columns = RowSpec((Column(name="observation", dtype="<f4", shape=(2,)), Column(name="action", dtype="<i8")))
    spec = pattern_table(Pattern(ACTION, table="acts"), columns, name="unused", max_items=10, rows_of="replay")
    assert (spec.name, spec.rows_of, spec.view[0].column) == ("acts", "replay", "action")
