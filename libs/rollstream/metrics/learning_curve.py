"""The picture at the end of a run: mean return over environment steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rollstream.metrics.report import Report

__all__ = ["draw_learning_curve"]


def draw_learning_curve(reports: Sequence[Report], path: Path, *, title: str, goal: float | None = None) -> None:
    """Write a PNG of the mean return over environment steps.

    Args:
        goal: return that the run was to reach, drawn as a line.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    told = [(report.env_steps, report.mean_return) for report in reports if report.mean_return is not None]
    figure = Figure(figsize=(8.0, 4.5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if told:
        axes.plot([steps for steps, _ in told], [mean for _, mean in told], color="#2563eb", linewidth=1.8, label="mean return")
    else:
        axes.text(0.5, 0.5, "no episode finished", ha="center", va="center", transform=axes.transAxes, color="#6b7280")
    if goal is not None:
        axes.axhline(goal, color="#16a34a", linewidth=1.0, linestyle="--", label=f"goal {goal:g}")
    axes.set_title(title)
    axes.set_xlabel("environment steps")
    axes.set_ylabel("mean return of training episodes")
    axes.grid(visible=True, alpha=0.25)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png")
