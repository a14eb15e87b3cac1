"""Where `--json` writes: looked at before the work, because hours later is too late to hear that the folder is missing."""

from __future__ import annotations

from pathlib import Path

from rollstream_service.folders import make_writable

__all__ = ["check_json_target"]


def check_json_target(where: str | None) -> None:
    """Make the folder of the file `where`; a `ConfigError` when that cannot be. None and `-` need none."""
    if where not in (None, "-"):
        make_writable(
            Path(str(where)).absolute().parent, what="the folder of --json", remedy="choose another file, or - for stdout"
        )
