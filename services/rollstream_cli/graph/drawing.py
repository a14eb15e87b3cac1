"""The report as a picture: the tree from left to right, each part a box with what goes through it, as wide as its share of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rollstream.errors import ConfigError
from rollstream.graph.component_report import ComponentReport, PartLine

__all__ = ["FORMATS", "draw_report", "mermaid"]

FORMATS = (".png", ".svg", ".pdf", ".mmd")
ROW_INCHES = 0.62
LEVEL_INCHES = 3.4


def draw_report(report: ComponentReport, file: Path) -> None:
    """Write the picture; `.mmd` is a Mermaid graph as text.

    Raises:
        ConfigError: another ending than one of `FORMATS`, or a folder that is not there.
    """
    if file.suffix not in FORMATS:
        raise ConfigError(f"--draw {file}: the picture must end in {', '.join(FORMATS)}")
    if not file.parent.is_dir():
        raise ConfigError(f"--draw {file}: there is no folder {file.parent}; make it first")
    if file.suffix == ".mmd":
        file.write_text(mermaid(report), encoding="utf-8")
    else:
        _picture(report, file)


def mermaid(report: ComponentReport) -> str:
    """The tree as a Mermaid graph."""
    lines = ["graph LR"]
    for path, parts in _by_path(report):
        lines.append(f'  {_node(path)}["{_title(path, parts)}<br/>{"<br/>".join(_flow(part) for part in parts)}"]')
        if path:
            lines.append(f"  {_node(_parent(path))} --> {_node(path)}")
    return "\n".join(lines) + "\n"


def _picture(report: ComponentReport, file: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    places = _by_path(report)
    depth = max((_depth(path) for path, _ in places), default=0) + 1
    figure = Figure(figsize=(LEVEL_INCHES * depth, ROW_INCHES * len(places) + 0.6))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, depth)
    axes.set_ylim(len(places), -0.5)
    row_of = {path: row for row, (path, _) in enumerate(places)}
    for path, parts in places:
        row, left = row_of[path], _depth(path)
        share = parts[0].parameters / max(1, report.parameters)
        axes.text(
            left + 0.03,
            row,
            "\n".join([_title(path, parts), *(_flow(part) for part in parts)]),
            fontsize=6,
            va="center",
            bbox={"boxstyle": "round", "facecolor": (1.0, 1.0 - 0.35 * share, 1.0 - 0.6 * share), "edgecolor": "0.4"},
        )
        if path:
            above = row_of.get(_parent(path), 0)
            axes.plot([left - 0.9, left - 0.9, left], [above + 0.2, row, row], color="0.6", linewidth=0.8, zorder=0)
    figure.savefig(file, dpi=150)


def _by_path(report: ComponentReport) -> list[tuple[str, Sequence[PartLine]]]:
    found: dict[str, list[PartLine]] = {}
    for line in report.lines:
        for depth in range(_depth(line.path) + 1):
            found.setdefault(".".join(line.path.split(".")[:depth]), [])
        found[line.path].append(line)
    return [(path, parts or [PartLine(path=path, component="", api="", inputs="", output="", parameters=0, declare_ms=0.0)])
            for path, parts in found.items()]  # fmt: skip


def _title(path: str, parts: Sequence[PartLine]) -> str:
    kinds = ", ".join(dict.fromkeys(part.component for part in parts if part.component))
    return f"{path.rsplit('.', 1)[-1] or '/'}: {kinds} ({parts[0].parameters:,})"


def _flow(part: PartLine) -> str:
    inputs = part.inputs if len(part.inputs) <= 40 else part.inputs[:37] + "..."
    output = part.output if len(part.output) <= 40 else part.output[:37] + "..."
    return f"{part.api}: {inputs} -> {output}" if part.api else ""


def _depth(path: str) -> int:
    return path.count(".") + 1 if path else 0


def _parent(path: str) -> str:
    return path.rsplit(".", 1)[0] if "." in path else ""


def _node(path: str) -> str:
    return "n_" + path.replace(".", "_") if path else "root"
