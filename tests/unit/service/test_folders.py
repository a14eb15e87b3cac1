"""Folders are found out to be writable before work begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollstream.errors import ConfigError
from rollstream_service.folders import make_writable


def test_a_missing_folder_is_made_and_left_empty(tmp_path: Path) -> None:
    make_writable(tmp_path / "a" / "b", what="the folder of runs", remedy="choose another")
    assert list((tmp_path / "a" / "b").iterdir()) == []


@pytest.mark.parametrize(("name", "why"), [("file", "it is a file"), ("file/below", "Not a directory")])
def test_a_file_in_its_place_is_named(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=rf"cannot write to the folder of runs .*/{name} \({why}\); choose another"):
        make_writable(tmp_path / name, what="the folder of runs", remedy="choose another")


def test_a_folder_that_takes_no_files_is_named() -> None:
    with pytest.raises(ConfigError, match=r"cannot write to the folder of runs /proc/none \("):
        make_writable(Path("/proc/none"), what="the folder of runs", remedy="choose another")
