"""A flow as a tree, in the order in which items go: every operator on a line of its own, branches side by side.

┌ rollouts          in every actor
│ store_into        in every actor
│ ║ in order of arrival, at most 4 messages of an actor in flight
│ gather_async      in the learner
├ samples_replay    in the learner
│ update            in the learner
└▶union             in the learner
  report            in the learner
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rollstream.flow.view import EdgeView, FlowView, NodeView

__all__ = ["TreeLine", "place_of", "settings_of", "tree", "tree_lines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLine:
    """One line: its branches, and the node that stands there; a line without a node is the label of an edge, with a note on it."""

    branches: str
    node: NodeView | None = None
    text: str = ""
    note: str = ""


def tree(view: FlowView) -> str:
    """The tree with what each operator was given, the process it runs in, and the line of the flow page that made it."""
    lines = tree_lines(view)
    rows = [
        (line.branches + (line.node.name if line.node else line.text), *(_facts(line.node) if line.node else (line.note, "", "")))
        for line in lines
    ]
    drawn = [row for row, line in zip(rows, lines, strict=True) if line.node]
    widths = [max(len(row[0]) for row in rows), *(max(len(row[column]) for row in drawn) for column in (1, 2))]
    return "\n".join(
        "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip() for row in rows
    )


def tree_lines(view: FlowView) -> list[TreeLine]:
    """The lines of the tree, from the sources to the end of the flow."""
    return _Tree(view).lines()


def settings_of(node: NodeView) -> str:
    """What an operator was given, e.g. `steps=128`, in short."""
    hidden = {"in_flight", "emit", "index"} | ({"weights"} if set(str(node.settings.get("weights", ""))) <= {"1", ","} else set())
    parts = [f"{name}={_short(value)}" for name, value in node.settings.items() if name not in hidden]
    return " ".join(parts)


def place_of(node: NodeView) -> str:
    """Folder, file and line of the page that made it, e.g. `ppo/flow.py:18`."""
    return f"{'/'.join(PurePath(node.file).parts[-2:])}:{node.line}"


class _Tree:
    """Walks from the end of the flow to its sources."""

    def __init__(self, view: FlowView) -> None:
        self._view = view
        self._nodes = {node.name: node for node in view.nodes}
        self._into: dict[str, list[EdgeView]] = {}
        for edge in view.edges:
            self._into.setdefault(edge.target, []).append(edge)
        self._drawn: set[str] = set()

    def lines(self) -> list[TreeLine]:
        return self._upto(self._view.nodes[-1].name)

    def _upto(self, name: str) -> list[TreeLine]:
        """Everything before the node, and the node."""
        if name in self._drawn:
            return [TreeLine(branches="", text=f"items of {name}, see above")]
        self._drawn.add(name)
        edges, node = self._into.get(name, []), self._nodes[name]
        if len(edges) <= 1:
            lines = [line for edge in edges for line in [*self._upto(edge.source), *_label(edge)]]
            return _below(lines, node)
        lines = []
        for number, edge in enumerate(edges):
            for at, line in enumerate([*self._upto(edge.source), *_label(edge)]):
                bar = ("┌ " if number == 0 else "├ ") if at == 0 else "│ "
                lines.append(replace(line, branches=bar + line.branches))
        return [*lines, TreeLine(branches="└▶", node=node)]


def _below(lines: list[TreeLine], node: NodeView) -> list[TreeLine]:
    """`node` under what comes before it: under a union two columns to the right, where its arrow ends."""
    before = lines[-1] if lines else None
    indent = "  " if before is not None and before.branches.startswith(("└▶", "  ")) else ""
    return [*lines, TreeLine(branches=indent, node=node)]


def _label(edge: EdgeView) -> list[TreeLine]:
    if not edge.crosses:
        return []
    how = "barrier" if edge.barrier else "as they come"
    note = "a round is one message of every live actor" if edge.barrier else "messages in order of arrival"
    return [
        TreeLine(branches="", text=f"║ {how}, in flight {edge.in_flight}", note=f"{note}, at most {edge.in_flight} of an actor")
    ]


def _facts(node: NodeView) -> tuple[str, str, str]:
    where = "in every actor" if node.where == "actor" else "in the learner"
    bound = f" holds at most {node.bound_items}" if node.bound_items and node.kind != "prefetch" else ""
    return where, settings_of(node) + bound, place_of(node)


def _short(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else text[:37] + "..."
