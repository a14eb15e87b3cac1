"""Where `--json` writes is looked at before the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollstream.errors import ConfigError
from rollstream_cli.json_target import check_json_target


def test_a_folder_is_made(tmp_path: Path) -> None:
    check_json_target(str(tmp_path / "deep" / "out.json"))
    assert (tmp_path / "deep").is_dir()


@pytest.mark.parametrize("where", [None, "-"])
def test_standard_output_needs_no_folder(where: str | None) -> None:
    check_json_target(where)


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write to the folder of --json .*/file \(it is a file\); choose another file"):
        check_json_target(str(tmp_path / "file" / "out.json"))
