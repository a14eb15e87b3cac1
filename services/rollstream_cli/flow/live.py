"""A running flow on the terminal: the tree with rates, depths and shares of every operator, and under it the bottleneck in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rollstream.config import FINAL_PHASES
from rollstream.errors import ConfigError, RollstreamError
from rollstream.flow import FlowView
from rollstream.flow.drawing import TreeLine, tree_lines

if TYPE_CHECKING:
    from rollstream_cli.rest import Rest

__all__ = ["FlowWatch", "flow_table", "newest_running"]

BAR = 10
"""Cells of the bar that shows a share of the time."""


class FlowWatch:
    """Looks at one experiment's flow now and then."""

    def __init__(self, rest: Rest, experiment: str) -> None:
        self._rest = rest
        self._experiment = experiment
        self.phase = ""
        self._view: FlowView | None = None

    def look(self) -> None:
        """Ask the cell."""
        self.phase = str(self._rest.get(f"/v1/experiments/{self._experiment}")["phase"])
        told = self._rest.get(f"/v1/experiments/{self._experiment}/flow")["flow"]
        self._view = None if told is None else FlowView.from_json(told)

    def shown(self) -> Any:
        """The frame."""
        title = Text(f"{self._experiment}  {self.phase}", style="bold")
        if self._view is None:
            return Group(title, Text("the learner has not built the flow yet"))
        return Group(title, flow_table(self._view), Text(sentence(self._view), style="bold yellow"))

    def run(self, console: Console, *, every_s: float, keys: Callable[[float], str]) -> None:
        """Show frames until `q` or the end of the experiment, in one place on a terminal, one below the other elsewhere."""
        if not console.is_terminal:
            while True:
                console.print(self._frame())
                if self.phase in FINAL_PHASES or keys(every_s):
                    return
        with Live(console=console, auto_refresh=False) as live:
            while True:
                live.update(Group(self._frame(), Text("q ends", style="dim")), refresh=True)
                if self.phase in FINAL_PHASES or keys(every_s) in ("q", "Q", "\x03", "\x1b"):
                    return

    def _frame(self) -> Any:
        """Look, and show; a cell that is away for a while is shown as that."""
        try:
            self.look()
        except ConfigError:
            raise
        except RollstreamError as error:
            return Group(self.shown(), Text(str(error)))
        return self.shown()


def sentence(view: FlowView) -> str:
    """The bottleneck in words."""
    return view.bottleneck.sentence if view.bottleneck is not None else "nothing has moved yet"


def flow_table(view: FlowView) -> Table:
    """One row for each operator, as it stands in the tree."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("operator", no_wrap=True)
    table.add_column("runs in", no_wrap=True)
    for name in ("items", "items/s", "steps/s", "holds"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("works", no_wrap=True)
    table.add_column("waits", no_wrap=True)
    table.add_column("waited s", justify="right", no_wrap=True)
    table.add_column("for", overflow="fold")
    for line in tree_lines(view):
        table.add_row(*_cells(line))
    return table


def newest_running(listed: Mapping[str, Any]) -> str:
    """The newest experiment that has not ended; of those that have, the newest."""
    experiments = listed["experiments"]
    if not experiments:
        raise ConfigError("the cell has no experiments; `rollstream submit --algo ppo --env CartPole-v1` starts one")
    running = [one["id"] for one in experiments if one["phase"] not in FINAL_PHASES]
    return str(running[0] if running else experiments[0]["id"])


def _cells(line: TreeLine) -> tuple[str | Text, ...]:
    node = line.node
    if node is None:
        return (Text(line.branches + line.text, style="dim"),)
    where = "learner" if node.where == "learner" else f"{node.processes} actors" if node.items is not None else "actors"
    return (
        line.branches + node.name,
        "1 actor" if where == "1 actors" else where,
        _number(node.items, ",.0f"),
        _number(node.items_per_s, ",.1f"),
        _number(node.env_steps_per_s, ",.0f") if node.env_steps_per_s else "",
        f"{node.depth_items} of {node.bound_items}" if node.bound_items else "",
        _bar(node.busy_share, "green"),
        _bar(node.waited_share, "yellow"),
        _number(node.waited_s, ",.1f") if node.waited_s else "",
        node.waits_for,
    )


def _bar(share: float | None, color: str) -> Text:
    if share is None:
        return Text("-")
    full = round(share * BAR)
    return Text("█" * full + "·" * (BAR - full) + f" {100 * share:3.0f} %", style=color if full else "dim")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
