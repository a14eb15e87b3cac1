"""A flow as a Mermaid graph: two boxes, one for every actor and one for the learner, with tables between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollstream.flow.drawing.tree import place_of, settings_of

if TYPE_CHECKING:
    from rollstream.flow.view import EdgeView, FlowView, NodeView

__all__ = ["mermaid"]


def mermaid(view: FlowView) -> str:
    """The graph as text for `mermaid` blocks of Markdown."""
    numbers = {node.name: f"n{number}" for number, node in enumerate(view.nodes)}
    lines = ["flowchart LR"]
    for where, title in (("actor", "in every actor"), ("learner", "in the learner")):
        inside = [node for node in view.nodes if node.where == where]
        if inside:
            lines.append(f'  subgraph {where}["{title}"]')
            lines += [f'    {numbers[node.name]}["{_text(node)}"]' for node in inside]
            lines.append("  end")
    lines += [f"  {numbers[edge.source]} {_arrow(edge, view)} {numbers[edge.target]}" for edge in view.edges]
    lines += _tables(view, numbers)
    return "\n".join(lines) + "\n"


def _text(node: NodeView) -> str:
    settings = settings_of(node).replace('"', "'")
    parts = [node.name, settings, place_of(node)]
    return "<br/>".join(part for part in parts if part)


def _arrow(edge: EdgeView, view: FlowView) -> str:
    if edge.crosses:
        how = "barrier" if edge.barrier else "as they come"
        return f'== "{how}, in flight {edge.in_flight}" ==>'
    bound = next(node.bound_items for node in view.nodes if node.name == edge.target)
    return f'-- "at most {bound}" -->' if bound else "-->"


def _tables(view: FlowView, numbers: dict[str, str]) -> list[str]:
    lines = []
    for table in dict.fromkeys(node.table for node in view.nodes if node.table):
        box = f"table_{''.join(letter if letter.isalnum() else '_' for letter in table)}"
        lines.append(f'  {box}[("table {table}")]')
        for node in (node for node in view.nodes if node.table == table):
            name = numbers[node.name]
            lines.append(f"  {box} -.-> {name}" if node.kind == "samples" else f"  {name} -.-> {box}")
    return lines
