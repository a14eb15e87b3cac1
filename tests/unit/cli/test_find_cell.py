"""Which cell a command means."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from rollstream.errors import ConfigError
from rollstream_cli.cell.state import CellState, hold_directory, write_state
from rollstream_cli.find_cell import CellAddress, connect, find_cell, newest_cell_directory


def begin(directory: Path, stack: ExitStack) -> None:
    directory.mkdir(parents=True)
    stack.enter_context(hold_directory(directory))
    write_state(directory, CellState(pid=1, url=f"http://{directory.name}", token="t"))


def find(runs_dir: Path, **named: object) -> CellAddress:
    return find_cell(**{"url": None, "token": None, "directory": None, "runs_dir": runs_dir, **named})  # type: ignore[arg-type]


def test_a_url_wins(tmp_path: Path) -> None:
    assert find(tmp_path, url="http://a", token="b") == CellAddress(url="http://a", token="b")


def test_the_cell_of_up_is_the_default(tmp_path: Path) -> None:
    with ExitStack() as stack:
        begin(tmp_path / "cell", stack)
        begin(tmp_path / "ppo-1", stack)
        assert find(tmp_path).url == "http://cell"
        assert find(tmp_path, directory=tmp_path / "ppo-1").url == "http://ppo-1"


def test_without_it_the_newest_that_runs_is_meant(tmp_path: Path) -> None:
    with ExitStack() as stack:
        begin(tmp_path / "ppo-1", stack)
        (tmp_path / "dead").mkdir()
        write_state(tmp_path / "dead", CellState(pid=1, url="http://dead"))
        assert find(tmp_path).url == "http://ppo-1"


def test_when_none_runs_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no cell runs in .*; start one with `rollstream up`, or name one with --url"):
        connect(url=None, token=None, directory=None, runs_dir=tmp_path)


def test_logs_are_those_of_the_cell_that_wrote_last_when_none_runs(tmp_path: Path) -> None:
    (tmp_path / "ppo-1" / "logs").mkdir(parents=True)
    assert newest_cell_directory(tmp_path) == tmp_path / "ppo-1"
    assert newest_cell_directory(tmp_path / "none") == tmp_path / "none" / "cell"
