"""What a run came to: the learner's results and what the processes cost, as one flat record and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from rollstream_cli.usage import UsageMeter, UsageSample

__all__ = ["cores_between", "print_summary", "with_usage"]


def with_usage(summary: Mapping[str, Any], *, meter: UsageMeter, first: UsageSample, last: UsageSample) -> dict[str, Any]:
    """`summary` plus what all processes of the cell, the command included, used."""
    peak = meter.peak or last
    return {
        **summary,
        "cores_used": round(cores_between(first, last), 2),
        "rss_total_mb": round(peak.total_mb, 1),
        "rss_mb": {member: round(mb, 1) for member, mb in sorted(peak.rss_mb.items())},
    }


def cores_between(first: UsageSample, last: UsageSample) -> float:
    """Processor seconds per second between two samples."""
    return (last.cpu_s - first.cpu_s) / max(1e-9, last.at_s - first.at_s)


def print_summary(console: Console, summary: Mapping[str, Any], *, title: str) -> None:
    """The summary as a table for people; what is not known is left out."""
    table = Table(title=title, show_header=False, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for label, text in _rows(summary):
        table.add_row(label, text)
    console.print(table, soft_wrap=True)


def _rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []

    def add(label: str, name: str, pattern: str = "{:,.0f}") -> None:
        value = summary.get(name)
        if value is not None and value != "":
            rows.append((label, pattern.format(value)))

    add("mean return", "mean_return", "{:.1f}")
    add("evaluation episodes", "evaluation_episodes")
    add("env steps", "env_steps")
    add("env steps per second", "env_steps_per_s")
    add("updates", "updates")
    add("updates per second", "updates_per_s", "{:,.1f}")
    add("seconds", "wall_s", "{:.1f}")
    add("start to first update, s", "start_to_first_update_s", "{:.2f}")
    add("lag", "lag", "{:.2f}")
    add("actors that contributed", "actors_contributed")
    add("memory of all processes, MB", "rss_total_mb")
    add("cores used", "cores_used", "{:.2f}")
    add("checkpoint", "checkpoint", "{}")
    add("learning curve", "learning_curve", "{}")
    add("summary", "summary_file", "{}")
    return rows
