"""`cell.json`: how commands find a cell that runs, or has run, in a directory.

It holds the token of the REST API, so only its owner may read it. A lock file beside it, held by the supervisor as long as it
lives, tells whether the cell runs: a lock cannot be left behind by a process that was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, ValidationError

from rollstream.config import Frozen
from rollstream.errors import ConfigError

__all__ = ["CELL_FILE", "CellState", "hold_directory", "is_running", "read_state", "write_privately", "write_state"]

CELL_FILE = "cell.json"
LOCK_FILE = "cell.lock"


class CellState(Frozen):
    """What a supervisor tells other commands."""

    pid: int
    """Process id of the supervisor."""
    url: str
    """Where the cell's REST API listens."""
    token: str = Field(default="", repr=False)
    """Bearer token with the role of an operator; empty when the API asks for none."""
    redis: str = ""
    """Address of Redis, without its password."""
    kind: str = "up"
    """`up` for a long-lived cell, `train` for the cell of one run, `bench` for a measurement."""
    experiment: str = ""
    """The run that a `train` cell was started for; empty for others."""
    runs_dir: str = ""
    """Folder in which the learner writes `<experiment>/`: checkpoints, reports, summaries."""
    started_wall_s: float = 0.0
    """When the supervisor started, in seconds since 1970."""


def write_privately(path: Path, text: str) -> None:
    """Replace `path` in one step by a file that only its owner may read; a reader never sees half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_state(directory: Path, state: CellState) -> None:
    """Write `<directory>/cell.json`."""
    write_privately(directory / CELL_FILE, json.dumps(state.model_dump(mode="json"), indent=2) + "\n")


def read_state(directory: Path) -> CellState:
    """Read `<directory>/cell.json`."""
    path = directory / CELL_FILE
    try:
        return CellState.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ConfigError(f"{directory} holds no cell (no {CELL_FILE}); start one with `rollstream up`") from None
    except ValidationError as error:
        raise ConfigError(f"{path} is damaged: {error.errors()[0]['msg']}; delete it and start the cell again") from error


@contextlib.contextmanager
def hold_directory(directory: Path) -> Iterator[None]:
    """Own `directory` until the block ends; refused while another supervisor owns it."""
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"a cell runs in {directory} already; stop it with `rollstream down`") from None
        yield
    finally:
        os.close(descriptor)


def is_running(directory: Path) -> bool:
    """Is there a living supervisor in `directory`?"""
    try:
        descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
