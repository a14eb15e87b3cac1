"""Reports and pictures of a run: written while they can be, never worth a run."""

from __future__ import annotations

import json
from pathlib import Path

from rollstream.clock import FakeClock
from rollstream.metrics import Report
from rollstream_learner.run_files import RunFiles


def files_in(directory: Path, said: list[str]) -> RunFiles:
    return RunFiles(directory, clock=FakeClock(), on_trouble=said.append)


def test_reports_and_picture_are_written(tmp_path: Path) -> None:
    said: list[str] = []
    files = files_in(tmp_path, said)
    files.write(Report(env_steps=10, mean_return=1.0))
    files.close()
    assert json.loads((tmp_path / "reports.jsonl").read_text())["env_steps"] == 10
    assert files.draw(title="t", goal=None) == str(tmp_path / "learning_curve.png")
    assert said == []


def test_there_is_no_picture_before_an_episode_has_ended(tmp_path: Path) -> None:
    files = files_in(tmp_path, [])
    files.write(Report(env_steps=10))
    files.close()
    assert files.draw(title="t", goal=None) is None


def test_what_cannot_be_written_is_told_once_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file in the place of the folder")
    said: list[str] = []
    files = files_in(tmp_path / "run", said)
    files.write(Report(env_steps=10, mean_return=1.0))
    assert files.draw(title="t", goal=None) is None
    files.close()
    assert len(said) == 1
    assert "cannot write reports and pictures to" in said[0] and "the run goes on without" in said[0]


def test_a_disk_that_becomes_full_is_told_once(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "reports.jsonl").symlink_to("/dev/full")
    files = files_in(tmp_path, said)
    for _ in range(3):
        files.write(Report(env_steps=10, mean_return=1.0))
    files.close()
    assert said == [f"cannot write reports and pictures to {tmp_path} (No space left on device); the run goes on without"]
