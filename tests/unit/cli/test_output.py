"""Results, JSON and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rollstream.errors import ConfigError, Problem, StoreRefused
from rollstream_cli.output import print_error, write_json


def test_json_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"mean_return": 500.0}, "-")
    assert json.loads(capsys.readouterr().out) == {"mean_return": 500.0}


def test_json_replaces_a_file_in_one_step(tmp_path: Path) -> None:
    write_json([1], str(tmp_path / "out.json"))
    write_json([2], str(tmp_path / "out.json"))
    assert json.loads((tmp_path / "out.json").read_text()) == [2]
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot write .*none/out.json: No such file"):
        write_json({}, str(tmp_path / "none" / "out.json"))


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(StoreRefused("Redis refused the password"))
    assert capsys.readouterr().err == "error: Redis refused the password\n"


def test_listed_problems_stand_one_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    problems = [Problem(path="seed", message="negative"), Problem(path="actors", message="none")]
    print_error(ConfigError("the spec has 2 bad field(s): seed: negative; actors: none", problems=problems))
    assert capsys.readouterr().err.splitlines() == [
        "error: the spec has 2 bad field(s):",
        "  seed: negative",
        "  actors: none",
    ]
