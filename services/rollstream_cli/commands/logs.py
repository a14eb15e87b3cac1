"""`rollstream logs`: what the processes of a cell on this machine wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rollstream_cli.commands.options import Directory, RunsDir

__all__ = ["logs"]


def logs(
    member: Annotated[str | None, typer.Argument(metavar="MEMBER", help="e.g. actor-0, control; without it all.")] = None,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on showing lines as they come, until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many of the last lines to show.")] = 50,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: Annotated[bool, typer.Option("--json", help="Print lines as they were written, one JSON object each.")] = False,
) -> None:
    """Show the logs of a cell on this machine. On Kubernetes and Compose use their own commands for logs."""
    import sys

    from rollstream_cli.find_cell import newest_cell_directory
    from rollstream_cli.interrupts import catch_interrupts
    from rollstream_cli.log_lines import LogFiles, LogLine, describe_line

    def show(line: LogLine) -> None:
        sys.stdout.write((line.text if json else describe_line(line)) + "\n")

    files = LogFiles(directory or newest_cell_directory(runs_dir), member=member)
    for line in files.last(lines=lines):
        show(line)
    sys.stdout.flush()
    if follow:
        with catch_interrupts() as interrupts:
            for line in files.follow(interrupts.asked):
                show(line)
                sys.stdout.flush()
