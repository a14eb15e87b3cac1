"""Logs of a cell."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from rollstream.errors import ConfigError
from rollstream_cli.log_lines import LogFiles, LogLine, describe_line


def line(second: int, event: str) -> str:
    return json.dumps({"timestamp": f"2026-01-01T00:00:{second:02}Z", "level": "info", "event": event, "role": "x"}) + "\n"


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "actor-0.log").write_text(line(1, "a") + line(4, "d") + "Traceback\n")
    (logs / "control.log").write_text(line(2, "b") + line(3, "c") + line(5, "e") + "half a li")
    return tmp_path


def test_lines_of_all_members_stand_in_order_of_time(cell: Path) -> None:
    files = LogFiles(cell, member=None)
    texts = [entry.entry.get("event", entry.text) for entry in files.last(lines=10)]
    assert texts == ["a", "b", "c", "d", "Traceback", "e"]
    assert [entry.entry["event"] for entry in LogFiles(cell, member="control").last(lines=2)] == ["c", "e"]


def test_following_shows_new_lines_once_they_are_complete(cell: Path) -> None:
    files = LogFiles(cell, member=None)
    files.last(lines=0)
    stopping = threading.Event()
    lines = files.follow(stopping)
    with (cell / "logs" / "control.log").open("a") as log:
        log.write("ne\n")
    (cell / "logs" / "actor-1.log").write_text("new member\n")
    assert {next(lines).text, next(lines).text} == {"half a line", "new member"}
    stopping.set()
    assert list(lines) == []


def test_a_log_that_was_moved_away_is_read_from_its_start(cell: Path) -> None:
    files = LogFiles(cell, member="actor-0")
    files.last(lines=0)
    (cell / "logs" / "actor-0.log").write_text("x\n")
    assert next(files.follow(threading.Event())).text == "x"


def test_a_line_for_people_has_time_member_and_the_rest() -> None:
    entry = {"timestamp": "2026-01-01T10:20:30.5Z", "level": "error", "event": "failed", "member": "m", "reason": "x"}
    shown = describe_line(LogLine(member="actor-0", text=json.dumps({**entry, "exception": "Traceback"})))
    assert shown == "10:20:30 actor-0      error   failed reason=x\nTraceback"
    assert describe_line(LogLine(member="redis", text="{plain")) == "redis        {plain"


def test_unknown_members_and_directories_are_refused(cell: Path) -> None:
    with pytest.raises(ConfigError, match="there is no log of 'actor-9'; there are: actor-0, control"):
        LogFiles(cell, member="actor-9")
    with pytest.raises(ConfigError, match="holds no logs; name the directory of a cell or a run with --dir"):
        LogFiles(cell / "none", member=None)
