"""What a run came to: the learner's results and what the processes cost, as one flat record and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from rollstream_cli.usage import UsageMeter, UsageSample

__all__ = ["cores_between", "print_measurement", "print_summary", "with_usage"]


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
    """The summary of a run as a table for people; what is not known is left out."""
    _print(console, summary, SUMMARY_ROWS, title=title)


def print_measurement(console: Console, measured: Mapping[str, Any], *, title: str) -> None:
    """A measurement as a table for people."""
    _print(console, measured, MEASUREMENT_ROWS, title=title)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: where its value is, what it is called, how it is written."""

    name: str
    label: str
    form: str = ",.0f"


COST_ROWS = (
    Row("start_to_first_update_s", "start to first update, s", ".2f"),
    Row("lag", "lag", ".2f"),
    Row("cores_used", "cores used", ".2f"),
    Row("rss_total_mb", "memory of all processes, MB"),
)
SUMMARY_ROWS = (
    Row("mean_return", "mean return", ".1f"),
    Row("env_steps", "env steps"),
    Row("env_steps_per_s", "env steps per second"),
    Row("updates", "updates"),
    Row("updates_per_s", "updates per second", ",.1f"),
    Row("wall_s", "seconds", ".1f"),
    Row("actors_contributed", "actors that contributed"),
    *COST_ROWS,
    Row("checkpoint", "checkpoint", ""),
    Row("learning_curve", "learning curve", ""),
    Row("summary_file", "summary", ""),
)
MEASUREMENT_ROWS = (
    Row("env_steps_per_s", "env steps sampled per second"),
    Row("env_steps_trained_per_s", "env steps trained per second"),
    Row("updates_per_s", "updates per second", ",.1f"),
    Row("window_s", "measured seconds", ".1f"),
    *COST_ROWS,
)


def _print(console: Console, values: Mapping[str, Any], rows: Sequence[Row], *, title: str) -> None:
    known = [row for row in rows if values.get(row.name) not in (None, "")]
    width = max((len(row.label) for row in known), default=0)
    console.print(title, markup=False, style="bold")
    for row in known:
        console.print(f"  {row.label:<{width}}  {_text(values[row.name], row.form)}", markup=False, soft_wrap=True)


def _text(value: object, form: str) -> str:
    return format(value, form) if isinstance(value, (int, float)) and form else str(value)
