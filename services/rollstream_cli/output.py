"""Where things are printed: progress and errors on standard error, results on standard output, JSON where it was asked for."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from rollstream.errors import ConfigError, RollstreamError

__all__ = ["error_console", "print_error", "result_console", "write_json"]

STANDARD_OUTPUT = "-"
FILE_COLUMNS = 200
"""Width of tables that do not go to a terminal: wide enough that ids are not broken in two."""


def result_console() -> Console:
    """For results that people read."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else FILE_COLUMNS)


def error_console() -> Console:
    """For progress and errors, so that standard output can go to a program."""
    return Console(stderr=True, highlight=False)


def write_json(value: Any, where: str) -> None:
    """Write `value` to the file `where`, in one step; `-` is standard output."""
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    if where == STANDARD_OUTPUT:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    path = Path(where)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def print_error(error: RollstreamError) -> None:
    """`error: ...`, all listed problems one per line, and nothing of our own machinery."""
    lines = [str(error)]
    if isinstance(error, ConfigError) and len(error.problems) > 1:
        lines = [str(error).split(": ", 1)[0] + ":", *(f"  {problem}" for problem in error.problems)]
    sys.stderr.write("error: " + "\n".join(lines) + "\n")
