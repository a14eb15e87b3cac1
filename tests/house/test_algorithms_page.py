"""The page of algorithms says what the registry, the flow pages and the results say; our flows are the shortest."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollstream.algorithms.registry import ALGORITHMS
from rollstream_cli.reference.algorithms_page import filled
from rollstream_cli.reference.flow_lines import THEIRS, Theirs, our_lines

DOCS = Path(__file__).parents[2] / "docs"
LEARNING = DOCS / "learning"


def test_the_page_of_algorithms_is_what_would_be_written() -> None:
    page = (DOCS / "algorithms.md").read_text()
    assert page == filled(page, learning=LEARNING), "run `make docs`"


@pytest.mark.parametrize("theirs", [one for one in THEIRS if one.ours in ALGORITHMS], ids=lambda one: one.name)
def test_our_flow_is_the_shortest(theirs: Theirs) -> None:
    ours = our_lines()[theirs.ours]
    assert ours < theirs.smallest or (theirs.name == "A3C" and ours <= theirs.smallest)


def test_every_flow_is_below_40_lines() -> None:
    assert {name: lines for name, lines in our_lines().items() if lines >= 40} == {}


def test_every_algorithm_says_what_it_is_for() -> None:
    bare = [
        name
        for name, entry in ALGORITHMS.items()
        if not (entry.summary and entry.spaces and entry.policy and entry.status in ("proven", "new"))
    ]
    assert not bare


def test_results_are_of_algorithms_that_there_are() -> None:
    names = {file.stem for file in (*LEARNING.glob("*.json"), *LEARNING.glob("*.png"))}
    assert names <= set(ALGORITHMS)
