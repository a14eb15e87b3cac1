"""What was measured when algorithms learned, and what others published: from `docs/learning` to tables and curves.

docs/learning/<algorithm>.json   written by `python -m tests.learning.prove`
docs/learning/published.yaml     figures of others, with their addresses
docs/learning/<algorithm>.png    the curves, drawn here
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rollstream_cli.reference.markdown import table

__all__ = ["draw_curves", "measured_table", "published_table", "read_goals"]

PUBLISHED = "published.yaml"
INCHES_WIDE, INCHES_HIGH, DOTS_PER_INCH = 3.6, 2.4, 80


def read_goals(folder: Path, algorithm: str) -> list[dict[str, Any]]:
    """The goals of an algorithm with their attempts; none before it was measured."""
    file = folder / f"{algorithm}.json"
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["goals"] if file.exists() else []
    return found


def measured_table(goals: Sequence[Mapping[str, Any]]) -> str:
    """One row for each goal: steps and seconds of every seed, and the return in the end."""
    head = ("environment", "goal", "within steps", "steps to the goal, by seed", "seconds", "return in the end", "greedy")
    return table(head, [_row(goal) for goal in goals])


def published_table(folder: Path, algorithm: str) -> str:
    """Figures of others, each with where it stands; nothing when there are none."""
    document = yaml.safe_load((folder / PUBLISHED).read_text(encoding="utf-8"))
    rows = []
    for figure in document["figures"]:
        if figure["algorithm"] == algorithm:
            source = document["sources"][figure["source"]]
            rows.append(
                (
                    figure["env"],
                    str(figure["return"]),
                    figure["steps"],
                    f"[{source['name']}]({source['address']})",
                    source["note"],
                )
            )
    return table(("environment", "return", "steps", "source", "what it is"), rows) if rows else ""


def draw_curves(goals: Sequence[Mapping[str, Any]], file: Path, *, title: str) -> None:
    """One picture with a panel for each goal and a line for each seed; the goal is dashed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = [goal for goal in goals if any(done["curve"] for done in goal["attempts"])]
    if not drawn:
        return
    figure = Figure(figsize=(INCHES_WIDE * len(drawn), INCHES_HIGH), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, goal in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True):
        for done in goal["attempts"]:
            axes.plot([steps / 1_000 for steps, _ in done["curve"]], [value for _, value in done["curve"]], linewidth=1)
        axes.axhline(goal["goal_return"], color="0.5", linewidth=0.8, linestyle="--")
        axes.set_title(f"{title}: {_label(goal)}", fontsize=8)
        axes.set_xlabel("thousand environment steps", fontsize=7)
        axes.tick_params(labelsize=7)
    figure.savefig(file, dpi=DOTS_PER_INCH, metadata={"Software": ""})


def _row(goal: Mapping[str, Any]) -> tuple[str, ...]:
    attempts = goal["attempts"]
    return (
        _label(goal),
        f"{goal['goal_return']:g}" + ("" if goal["measured_by"] == "training" else " (greedy)"),
        f"{goal['limit_steps']:,}" if goal["limit_steps"] else "offline",
        " / ".join(f"{done['steps']:,}" if done["reached"] else f"not reached ({done['steps']:,})" for done in attempts),
        " / ".join(f"{done['wall_s']:.0f}" for done in attempts),
        " / ".join(_number(done["training_return"]) for done in attempts),
        " / ".join(_number(done["evaluation_return"]) for done in attempts),
    )


def _label(goal: Mapping[str, Any]) -> str:
    return f"{goal['env']} ({goal['name']})" if goal["name"] else str(goal["env"])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
