"""`cell.json` and the lock beside it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from rollstream.errors import ConfigError
from rollstream_cli.cell.state import CellState, hold_directory, is_running, read_state, write_state

STATE = CellState(pid=1, url="http://127.0.0.1:80", token="secret-token")


def test_state_is_read_as_it_was_written_and_is_private(tmp_path: Path) -> None:
    write_state(tmp_path, STATE)
    assert read_state(tmp_path) == STATE
    assert stat.S_IMODE((tmp_path / "cell.json").stat().st_mode) == 0o600
    assert "secret-token" not in repr(STATE)


def test_a_directory_without_a_cell_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no cell \(no cell.json\); start one with `rollstream up`"):
        read_state(tmp_path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cell.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"cell.json is damaged: .*; delete it and start the cell again"):
        read_state(tmp_path)


def test_one_supervisor_holds_a_directory(tmp_path: Path) -> None:
    assert not is_running(tmp_path)
    with hold_directory(tmp_path):
        assert is_running(tmp_path)
        with (
            pytest.raises(ConfigError, match="a cell runs in .* already; stop it with"),
            hold_directory(tmp_path),
        ):
            pass
        assert is_running(tmp_path)
    assert not is_running(tmp_path)
