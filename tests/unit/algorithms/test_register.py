"""Algorithms that a script makes known to its own process, and those whose pages are one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rollstream.algorithms import Algorithm, algorithm, known, register
from rollstream.algorithms.registry import ALGORITHMS
from rollstream.errors import ConfigError

MINE = Algorithm(name="mine", package=__name__, settings="Settings", agent="Agent", needs_replay=False)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """The registry as it was."""
    yield
    ALGORITHMS.pop("mine", None)


def test_what_was_registered_is_known_and_may_be_registered_again() -> None:
    register(MINE)
    register(MINE)
    assert "mine" in known()
    assert algorithm("mine") is MINE


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"there is an algorithm 'ppo' already, of rollstream.algorithms.ppo; choose another name"
    ):
        register(replace(MINE, name="ppo"))


def test_one_file_is_all_pages() -> None:
    made = replace(MINE, package="fractions", settings="Fraction")
    assert made.page("config") is made.page("flow")
    assert made.member("config", "Fraction").__name__ == "Fraction"
