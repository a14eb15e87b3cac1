"""The report as a table of a terminal: a tree with shapes, parameters and milliseconds."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from rollstream.graph.component_report import ComponentReport, PartLine

__all__ = ["print_report"]


def print_report(report: ComponentReport, console: Console) -> None:
    """Print the tree, then what could not be built alone and why."""
    modes = list(report.lines[0].build_ms) if report.lines else []
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("part")
    table.add_column("component.api")
    table.add_column("inputs -> output", overflow="fold")
    table.add_column("parameters", justify="right")
    table.add_column("declare ms", justify="right")
    for mode in modes:
        table.add_column(f"{mode} ms", justify="right")
    for line in report.lines:
        built = [_milliseconds(line.build_ms[mode]) for mode in modes]
        table.add_row(
            _branch(line),
            f"{line.component}.{line.api}",
            f"{line.inputs} -> {line.output}",
            f"{line.parameters:,}",
            f"{line.declare_ms:.2f}",
            *built,
        )
    console.print(table)
    state = f", {report.state:,} numbers of state" if report.state else ""
    console.print(f"{report.parameters:,} parameters{state}; shape pass {report.declare_ms:.1f} ms", highlight=False)
    for place, why in report.refusals.items():
        console.print(f"not built alone: {place}: {why}", highlight=False, markup=False)


def _branch(line: PartLine) -> str:
    depth = line.path.count(".") + 1 if line.path else 0
    return "  " * depth + (line.path.rsplit(".", 1)[-1] if line.path else "/")


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
