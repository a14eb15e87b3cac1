"""Which cell a command means: the one it names by URL, the one in a directory, or the one that runs here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rollstream.clock import Clock, SystemClock
from rollstream.errors import ConfigError
from rollstream_cli.cell.state import CELL_FILE, is_running, read_state
from rollstream_cli.rest import Rest

__all__ = ["DEFAULT_CELL", "CellAddress", "connect", "find_cell", "newest_cell_directory"]

DEFAULT_CELL = "cell"
"""Folder of `rollstream up` inside the folder of all runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAddress:
    """Where a cell answers; with its directory when it is on this machine."""

    url: str
    token: str = ""
    directory: Path | None = None


def find_cell(*, url: str | None, token: str | None, directory: Path | None, runs_dir: Path) -> CellAddress:
    """The cell that is meant.

    Args:
        url, token: win over everything.
        directory: of a cell on this machine.
        runs_dir: where to look when nothing is named: first `cell`, then the newest that runs.
    """
    if url is not None:
        return CellAddress(url=url, token=token or "")
    if directory is None:
        directory = _running_in(runs_dir)
    if not is_running(directory):
        raise ConfigError(f"no cell runs in {directory}; start one with `rollstream up`, or name one with --url or --dir")
    state = read_state(directory)
    return CellAddress(url=state.url, token=token or state.token, directory=directory)


def connect(*, url: str | None, token: str | None, directory: Path | None, runs_dir: Path) -> Rest:
    """A client of the cell that is meant."""
    found = find_cell(url=url, token=token, directory=directory, runs_dir=runs_dir)
    clock: Clock = SystemClock()
    return Rest(found.url, token=found.token, clock=clock, deadline_s=10.0)


def newest_cell_directory(runs_dir: Path) -> Path:
    """Where the cell that runs has its logs; when none runs, the one that wrote last."""
    found = _running_in(runs_dir)
    if is_running(found):
        return found
    folders = sorted(runs_dir.glob("*/logs"), key=lambda folder: -folder.stat().st_mtime)
    return folders[0].parent if folders else found


def _running_in(runs_dir: Path) -> Path:
    default = runs_dir / DEFAULT_CELL
    if is_running(default):
        return default
    files = sorted(runs_dir.glob(f"*/{CELL_FILE}"), key=lambda file: -file.stat().st_mtime)
    return next((file.parent for file in files if is_running(file.parent)), default)
