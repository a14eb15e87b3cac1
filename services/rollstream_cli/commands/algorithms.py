"""`rollstream algorithms`: every algorithm that can be named, ours and those of installed packages, one line each."""

from __future__ import annotations

from typing import Annotated, Any

import typer

__all__ = ["algorithms"]


def algorithms(*, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List all algorithms: the spaces they are for, whose experience they learn from, whether they need replay, and how proven they are."""
    from rich.table import Table

    from rollstream_cli.output import result_console, write_json

    listed = _listed()
    if json:
        write_json({"algorithms": listed}, "-")
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("algorithm", "learns", "replay", "status", "spaces", "what"):
        table.add_column(name, no_wrap=True)
    for entry in listed:
        replay = "needed" if entry["needs_replay"] else "-"
        table.add_row(entry["name"], entry["policy"] or "-", replay, entry["status"], entry["spaces"] or "-", entry["summary"])
    result_console().print(table)


def _listed() -> list[dict[str, Any]]:
    from rollstream.algorithms.registry import algorithm, known

    entries = [algorithm(name) for name in known()]
    return [
        {
            "name": entry.name,
            "summary": entry.summary,
            "policy": entry.policy,
            "needs_replay": entry.needs_replay,
            "spaces": entry.spaces,
            "status": entry.status,
            "package": entry.package,
        }
        for entry in entries
    ]
