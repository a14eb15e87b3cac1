"""The command line as people use it: a process of its own in an empty directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """Runs `rollstream` in `directory`."""

    directory: Path

    @property
    def runs(self) -> list[str]:
        """Names in the folder of runs."""
        folder = self.directory / "runs"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            command(arguments),
            cwd=self.directory,
            env=clean_environment() | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    def json(self, *arguments: str) -> Any:
        """Run a command that prints JSON."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command, to be interrupted later."""
        return subprocess.Popen(
            command(arguments),
            cwd=self.directory,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def processes(self) -> list[psutil.Process]:
        """What runs in the directory, or below."""
        found = []
        for process in psutil.process_iter():
            try:
                if Path(process.cwd()).is_relative_to(self.directory) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def until(self, condition: Callable[[], object], *, timeout_s: float = 60.0) -> None:
        """Wait until the condition is true."""
        pause = threading.Event()
        for _ in range(int(timeout_s / 0.1)):
            if condition():
                return
            pause.wait(0.1)
        raise AssertionError("the condition did not become true in time")

    def until_said(self, process: subprocess.Popen[str], words: str) -> None:
        """Read the standard error of `process` up to a line with `words`."""
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if words in line:
                return
        raise AssertionError(f"the command ended without saying {words!r}; it said: {''.join(said)}")


def command(arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "rollstream_cli", *arguments]


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ROLLSTREAM_")}


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(directory=tmp_path)
    yield made
    left = made.processes()
    for process in left:
        process.send_signal(signal.SIGKILL)
    assert not left, f"the command left processes behind: {left}"
