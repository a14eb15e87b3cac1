"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = ["Directory", "JsonFlag", "JsonTo", "RunsDir", "Token", "Url"]

Url: TypeAlias = Annotated[
    str | None,
    typer.Option("--url", envvar="ROLLSTREAM_URL", metavar="URL", help="URL of the cell; else one that runs here."),
]
Token: TypeAlias = Annotated[
    str | None, typer.Option("--token", envvar="ROLLSTREAM_TOKEN", metavar="TOKEN", help="Bearer token of the cell.")
]
Directory: TypeAlias = Annotated[
    Path | None, typer.Option("--dir", metavar="DIR", help="Directory of a cell on this machine; else runs/cell, or the newest.")
]
RunsDir: TypeAlias = Annotated[Path, typer.Option("--runs-dir", metavar="DIR", help="Folder of all runs.")]
JsonTo: TypeAlias = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to a file; - for standard output.")
]
JsonFlag: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
