"""Folders that must be there and be writable before work begins: found out at once, not at the first checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

from rollstream.errors import ConfigError

__all__ = ["make_writable"]


def make_writable(folder: Path, *, what: str, remedy: str) -> None:
    """Make `folder` when it is missing, and try to write into it.

    Args:
        what: how a person calls it, for the message.
        remedy: what to do when it cannot be written, for the message.
    """
    probe = folder / f".writable-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        why = "it is a file" if folder.is_file() else error.strerror
        raise ConfigError(f"cannot write to {what} {folder} ({why}); {remedy}") from error
