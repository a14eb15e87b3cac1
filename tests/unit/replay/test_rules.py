"""Item rules: windows complete, shorten at the end of an episode, and never cross one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError, NonFiniteError, TableError
from rollstream.replay.open_steps import ItemRuns, OpenSteps
from rollstream.replay.rules import EachRow, Episode, NStep, Sequence, TdMix, Transition
from rollstream.spaces import Flag

FLAGS = {"f": Flag.FIRST, ".": 0, "E": Flag.FINAL | Flag.TERMINATED, "T": Flag.FINAL | Flag.TRUNCATED, "p": Flag.PAD}


def rows(*environments: str, closing: bool = False, fresh: int | None = None, **columns: Any) -> OpenSteps:
    """Open rows, of which the last `fresh` of each environment (all by default) came with this flush."""
    lengths = np.array([len(rows) for rows in environments])
    return OpenSteps(
        columns={"flags": np.array([FLAGS[letter] for letter in "".join(environments)], np.uint8), **columns},
        offsets=np.cumsum([0, *lengths]),
        fresh=lengths if fresh is None else np.minimum(lengths, fresh),
        before=np.zeros(len(lengths), np.int64),
        closing=closing,
    )


def triples(runs: ItemRuns) -> list[tuple[int, int, int]]:
    return list(zip(runs.env.tolist(), runs.start.tolist(), runs.length.tolist(), strict=True))


def spans(runs: ItemRuns) -> list[tuple[int, int, int]]:
    """First row, first row of the core, last row."""
    lead = np.zeros_like(runs.start) if runs.lead is None else runs.lead
    return list(zip(runs.start.tolist(), (runs.start + lead).tolist(), (runs.start + runs.length - 1).tolist(), strict=True))


def test_windows_of_two_steps_complete_and_shorten_at_the_end_of_an_episode() -> None:
    runs = NStep(2).items(rows("f..Ef."))
    assert triples(runs) == [(0, 0, 3), (0, 1, 3), (0, 2, 2)]
    assert runs.keep.tolist() == [4]


def test_environments_do_not_see_each_other() -> None:
    runs = NStep(1).items(rows("f.", ".E", "f"))
    assert triples(runs) == [(0, 0, 2), (1, 0, 2)]
    assert runs.keep.tolist() == [1, 2, 0]


def test_an_item_is_made_only_with_the_row_that_completes_it() -> None:
    assert triples(NStep(2).items(rows("f...", fresh=1))) == [(0, 1, 3)]
    assert triples(NStep(2).items(rows("f..E", fresh=1))) == [(0, 1, 3), (0, 2, 2)]
    assert triples(NStep(2).items(rows("f..Ef", fresh=1))) == []


def test_a_transition_is_a_window_of_one_step() -> None:
    assert Transition(history=3) == NStep(1, history=3)


def test_an_episode_of_one_step_is_one_item() -> None:
    assert triples(NStep(5).items(rows("fEfT"))) == [(0, 0, 2), (0, 2, 2)]


def test_rows_before_an_episode_that_was_cut_without_an_end_stop_at_its_last_row() -> None:
    assert triples(NStep(2).items(rows("f..f.."))) == [(0, 0, 3), (0, 1, 2), (0, 3, 3)]


def test_closing_ends_windows_with_what_is_there() -> None:
    runs = NStep(3).items(rows("f..", "f", "", closing=True))
    assert triples(runs) == [(0, 0, 3), (0, 1, 2)]


def test_history_stands_before_the_core_and_stops_at_the_start_of_the_episode() -> None:
    runs = NStep(1, history=2).items(rows("f...Ef."))
    assert spans(runs) == [(0, 0, 1), (0, 1, 2), (0, 2, 3), (1, 3, 4), (5, 5, 6)]
    assert runs.keep.tolist() == [5]


def test_each_row_is_an_item_but_final_and_padding_rows() -> None:
    runs = EachRow().items(rows("f.Ep", "f"))
    assert triples(runs) == [(0, 0, 1), (0, 1, 1), (1, 0, 1)]
    assert runs.keep.tolist() == [4, 1]


def test_each_row_may_have_history() -> None:
    runs = EachRow(history=1).items(rows("f..Ef"))
    assert spans(runs) == [(0, 0, 0), (0, 1, 1), (1, 2, 2), (4, 4, 4)]
    assert runs.keep.tolist() == [4]


def test_a_sequence_starts_every_stride_steps_and_has_its_burn_in_before_it() -> None:
    runs = Sequence(length=3, stride=2, burn_in=1).items(rows("f......."))
    assert spans(runs) == [(0, 0, 3), (1, 2, 5), (3, 4, 7)]
    assert runs.keep.tolist() == [5]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("short", [(0, 0, 4), (2, 4, 6)]),
        ("aligned", [(0, 0, 4), (0, 2, 6)]),
        ("drop", [(0, 0, 4)]),
    ],
)
def test_the_end_of_an_episode_becomes_a_short_item_an_aligned_one_or_none(tail: Any, expected: Any) -> None:
    assert spans(Sequence(length=4, stride=4, burn_in=2, tail=tail).items(rows("f.....E"))) == expected


@pytest.mark.parametrize("tail", ["short", "aligned"])
def test_an_episode_whose_steps_are_all_in_whole_windows_has_no_tail(tail: Any) -> None:
    assert spans(Sequence(length=2, stride=2, tail=tail).items(rows("f...E"))) == [(0, 0, 2), (2, 2, 4)]


@pytest.mark.parametrize(("tail", "expected"), [("short", [(0, 0, 2)]), ("aligned", [(0, 0, 2)]), ("drop", [])])
def test_an_episode_shorter_than_a_sequence(tail: Any, expected: Any) -> None:
    assert spans(Sequence(length=5, stride=5, tail=tail).items(rows("f.E"))) == expected


def test_steps_between_sequences_that_leave_gaps_are_in_no_item() -> None:
    assert spans(Sequence(length=2, stride=4).items(rows("f...E"))) == [(0, 0, 2)]
    assert spans(Sequence(length=2, stride=4).items(rows("f....E"))) == [(0, 0, 2), (4, 4, 5)]


def test_an_episode_is_one_item_when_it_is_over() -> None:
    assert triples(Episode(10).items(rows("f..Ef."))) == [(0, 0, 4)]
    assert Episode(10).items(rows("f..Ef.")).keep.tolist() == [4]


def test_a_long_episode_is_split_into_items_that_share_a_row() -> None:
    assert spans(Episode(2).items(rows("f....E"))) == [(0, 0, 2), (2, 2, 4), (4, 4, 5)]


def test_a_long_episode_is_refused_when_asked_to() -> None:
    assert triples(Episode(5, overlong="error").items(rows("f....E"))) == [(0, 0, 6)]
    with pytest.raises(
        TableError, match="an episode of environment 1 has 3 steps so far, where Episode takes at most max_length 2"
    ):
        Episode(2, overlong="error").items(rows("f.", "f..."))


def test_a_priority_is_a_number_or_a_mix_of_td_errors_without_lead_and_bootstrap_row() -> None:
    error = np.array([9.0, 1.0, -3.0, 100.0], np.float32)
    assert NStep(1, priority=2.5).items(rows("f.E")).priority.tolist() == [2.5, 2.5]  # type: ignore[union-attr]
    runs = Sequence(length=2, stride=1, burn_in=1, tail="drop", priority=TdMix("td", eta=0.9)).items(rows("f..E", td=error))
    assert runs.priority == pytest.approx([0.9 * 9 + 0.1 * 5, 0.9 * 3 + 0.1 * 2])
    assert EachRow(priority=TdMix("td", eta=0.5)).items(rows("f...", td=error)).priority == pytest.approx([9, 1, 3, 100])


def test_td_errors_must_be_finite() -> None:
    with pytest.raises(NonFiniteError, match="column 'td' has a NaN or an infinity where item priorities"):
        NStep(1, priority=TdMix("td")).items(rows("f.", td=np.array([np.nan, 0.0])))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NStep(0), "NStep: steps must be >= 1, got 0"),
        (lambda: NStep(1, discount=1.5), "NStep: discount must be between 0 and 1, got 1.5"),
        (lambda: EachRow(history=-1), "EachRow: history must be >= 0, got -1"),
        (lambda: Episode(3, history=70_000), "Episode: history must be <= 65535, got 70000"),
        (lambda: Sequence(length=0, stride=1), "Sequence: length must be >= 1, got 0"),
        (lambda: Sequence(length=1, stride=0), "Sequence: stride must be >= 1, got 0"),
        (lambda: Sequence(length=1, stride=1, burn_in=65_000, history=600), "burn_in \\+ history must be <= 65535, got 65000"),
        (lambda: Sequence(1, 1, tail="long"), "tail must be short, aligned or drop, got 'long'"),  # type: ignore[arg-type]
        (lambda: Episode(1, overlong="cut"), "overlong must be split or error, got 'cut'"),  # type: ignore[arg-type]
        (lambda: TdMix("td", eta=2.0), "TdMix: eta must be between 0 and 1, got 2.0"),
    ],
)
def test_settings_that_cannot_work_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize("priority", [-1.0, float("nan"), float("inf")])
def test_a_priority_that_no_item_may_have_is_refused(priority: float) -> None:
    with pytest.raises(TableError, match="priorities must be finite and >= 0, got"):
        NStep(1, priority=priority)
