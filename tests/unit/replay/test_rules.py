"""Item rules: windows complete, shorten at the end of an episode, and never cross one."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.replay import EachRow, NStep
from rollstream.replay.rules import ItemRuns
from rollstream.spaces import Flag

FLAGS = {"f": Flag.FIRST, ".": 0, "E": Flag.FINAL | Flag.TERMINATED, "T": Flag.FINAL | Flag.TRUNCATED, "p": Flag.PAD}


def rows(*environments: str) -> tuple[np.ndarray, np.ndarray]:
    flags = np.array([FLAGS[letter] for letter in "".join(environments)], np.uint8)
    return flags, np.cumsum([0, *map(len, environments)])


def triples(runs: ItemRuns) -> list[tuple[int, int, int]]:
    return list(zip(runs.env.tolist(), runs.start.tolist(), runs.length.tolist(), strict=True))


def test_windows_of_two_steps_complete_and_shorten_at_the_end_of_an_episode() -> None:
    runs = NStep(2).items(*rows("f..Ef."), closing=False)
    assert triples(runs) == [(0, 0, 3), (0, 1, 3), (0, 2, 2)]
    assert runs.keep.tolist() == [4]


def test_environments_do_not_see_each_other() -> None:
    runs = NStep(1).items(*rows("f.", ".E", "f"), closing=False)
    assert triples(runs) == [(0, 0, 2), (1, 0, 2)]
    assert runs.keep.tolist() == [1, 2, 0]


def test_an_episode_of_one_step_is_one_item() -> None:
    assert triples(NStep(5).items(*rows("fEfT"), closing=False)) == [(0, 0, 2), (0, 2, 2)]


def test_rows_before_an_episode_that_was_cut_without_an_end_stop_at_its_last_row() -> None:
    runs = NStep(2).items(*rows("f..f.."), closing=False)
    assert triples(runs) == [(0, 0, 3), (0, 1, 2), (0, 3, 3)]


def test_closing_ends_windows_with_what_is_there() -> None:
    runs = NStep(3).items(*rows("f..", "f", ""), closing=True)
    assert triples(runs) == [(0, 0, 3), (0, 1, 2)]
    assert runs.keep.tolist() == [3, 1, 0]


def test_each_row_is_an_item_but_final_and_padding_rows() -> None:
    runs = EachRow().items(*rows("f.Ep", "f"), closing=False)
    assert triples(runs) == [(0, 0, 1), (0, 1, 1), (1, 0, 1)]
    assert runs.keep.tolist() == [4, 1]


def test_steps_must_be_at_least_one() -> None:
    with pytest.raises(ConfigError, match="NStep: steps must be >= 1, got 0"):
        NStep(0)
