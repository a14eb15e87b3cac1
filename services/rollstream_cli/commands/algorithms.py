"""`rollstream algorithms`: every algorithm that can be named, ours and those of installed packages, one line each."""

from __future__ import annotations

from typing import Annotated, Any

import typer

__all__ = ["algorithms"]


def algorithms(*, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List all algorithms: the spaces they are for, whose experience they learn from, whether they need replay, and how proven they are."""
    from rollstream_cli.output import result_console, write_json

    listed = _listed()
    if json:
        write_json({"algorithms": listed}, "-")
        return
    rows = [("algorithm", "learns", "replay", "status", "spaces", "what")]
    for entry in listed:
        replay = "needed" if entry["needs_replay"] else "-"
        rows.append((entry["name"], entry["policy"] or "-", replay, entry["status"], entry["spaces"] or "-", entry["summary"]))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        result_console().print(line, markup=False, soft_wrap=True)


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
