"""`rollstream status`: the cell and its experiments at a glance, or everything about one experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rollstream_cli.commands.options import Directory, JsonFlag, RunsDir, Token, Url

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["status"]


def status(
    experiment: Annotated[str | None, typer.Argument(metavar="ID", help="One experiment; without it the whole cell.")] = None,
    *,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Show phase, counters, lag, returns, who waits and why."""
    from rollstream_cli.find_cell import connect
    from rollstream_cli.output import result_console, write_json

    rest = connect(url=url, token=token, directory=directory, runs_dir=runs_dir)
    if experiment is not None:
        view = rest.get(f"/v1/experiments/{experiment}")
        if json:
            write_json(view, "-")
        else:
            print_experiment(result_console(), view)
        return
    cell, listed = rest.get("/v1/cell"), rest.get("/v1/experiments")
    if json:
        write_json({"url": rest.url, "cell": cell, **listed}, "-")
    else:
        print_cell(result_console(), rest.url, cell, listed)


def print_cell(console: Console, url: str, cell: Mapping[str, Any], listed: Mapping[str, Any]) -> None:
    """The cell, its members and its newest experiments."""
    from rich.table import Table

    actors = cell["actors"]
    wanted = "" if actors["wanted"] is None else f" of {actors['wanted']} wanted"
    console.print(
        f"{url}  release {cell['version']}  actors {actors['live']}{wanted}, {actors['assigned']} at work", markup=False
    )
    members = Table("member", "role", "ready", "works on", "MB", box=None, padding=(0, 2, 0, 0))
    for member in cell["members"]:
        ready = "yes" if member["ready"] else "no"
        members.add_row(member["id"], member["role"], ready, member["doing"] or "-", _number(member["rss_mb"], ".0f"))
    console.print(members)
    if not listed["experiments"]:
        console.print("no experiments; `rollstream submit --algo ppo --env CartPole-v1` starts one", markup=False)
        return
    experiments = Table("experiment", "phase", "condition", "why", box=None, padding=(0, 2, 0, 0))
    for item in listed["experiments"]:
        experiments.add_row(item["id"], item["phase"], item["condition"], "; ".join(item["why"]) or item["reason"] or "-")
    console.print(experiments)


def print_experiment(console: Console, view: Mapping[str, Any]) -> None:
    """Everything about one experiment that a person wants to see."""
    from rollstream_cli.progress import describe_report

    lines = [f"{view['id']}  {view['phase']}  {view['condition']}"]
    lines += [f"  {sentence}" for sentence in view["why"]]
    if view["reason"]:
        lines.append(f"  reason: {view['reason']}")
    lines.append(f"  {view['algorithm']} on {view['environment']}, learner {view['learner'] or '-'}")
    seats = ", ".join(seat["member"] + ("" if seat["live"] else " (gone)") for seat in view["actors"])
    lines.append(f"  actors: {seats or '-'}")
    report = view["report"]
    if report is not None:
        lines.append(f"  {describe_report(report)}")
        lines += [f"  waited {seconds:.2f} s since the report before: {who}" for who, seconds in _waits(report)]
    lines += [f"  {name} {value:,}" for name, value in sorted(view["counters"].items())]
    lines += [f"  {name}: {_text(value)}" for name, value in sorted(view["summary"].items())]
    if view["detail"]:
        lines += ["", str(view["detail"])]
    console.print("\n".join(lines), markup=False, soft_wrap=True)


def _waits(report: Mapping[str, Any]) -> list[tuple[str, float]]:
    waits = report.get("waits") or {}
    return sorted(((str(who), float(seconds)) for who, seconds in waits.items()), key=lambda entry: -entry[1])


def _text(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
