"""Starting and stopping a supervisor from another process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rollstream.errors import ConfigError, Problem, StoreRefused
from rollstream_cli.background import stop_in_background
from rollstream_cli.cell.state import CellState, hold_directory, write_state
from rollstream_cli.daemon import error_of, reply_error


def test_the_cell_of_a_run_is_stopped_in_its_own_terminal(tmp_path: Path) -> None:
    with hold_directory(tmp_path):
        write_state(tmp_path, CellState(pid=os.getpid(), url="http://a", kind="train", experiment="ppo-abc123"))
        with pytest.raises(ConfigError, match="in another terminal .* press Ctrl-C there, or use `rollstream stop ppo-abc123"):
            stop_in_background(tmp_path)


def test_what_a_killed_supervisor_left_is_cleared(tmp_path: Path) -> None:
    write_state(tmp_path, CellState(pid=1, url="http://a"))
    assert not stop_in_background(tmp_path)
    assert not (tmp_path / "cell.json").exists()


def test_an_error_of_the_supervisor_keeps_its_exit_code_and_problems() -> None:
    refused = error_of(reply_error(StoreRefused("wrong password")))
    assert (str(refused), refused.exit_code) == ("wrong password", 4)
    problems = [Problem(path="a", message="b"), Problem(path="c", message="d")]
    listed = error_of(reply_error(ConfigError("2 bad", problems=problems)))
    assert isinstance(listed, ConfigError)
    assert listed.problems == tuple(problems)
