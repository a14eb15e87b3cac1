"""Whoever names an environment on their own machine allows its module."""

from __future__ import annotations

import pytest

from rollstream_cli.allowed_modules import allowed_modules


@pytest.mark.parametrize(
    ("listed", "environment_id", "allowed"),
    [
        ("", "CartPole-v1", ()),
        ("", "my_games.maze:Maze", ("my_games.maze",)),
        ("games, more", "maze:Maze", ("games", "more", "maze")),
        ("maze", "maze:Maze", ("maze",)),
        ("", "envpool:Pong-v5", ()),
    ],
)
def test_the_module_is_added_once(listed: str, environment_id: str, allowed: tuple[str, ...]) -> None:
    assert allowed_modules({"ROLLSTREAM_ENVIRONMENT_MODULES": listed}, environment_id) == allowed


def test_nothing_is_allowed_by_default() -> None:
    assert allowed_modules({}, "CartPole-v1") == ()
