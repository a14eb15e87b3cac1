"""A flow in as few lines as it has chains: `rollouts ── advantages ══▶ gather_sync ── update`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rollstream.flow.view import EdgeView, FlowView

__all__ = ["chains"]


def chains(view: FlowView) -> list[str]:
    """One line for each chain; `══▶` is the way from the actors to the learner, `──▶` leads into a node that joins or splits."""
    targets: dict[str, list[EdgeView]] = {}
    sources: dict[str, list[EdgeView]] = {}
    for edge in view.edges:
        targets.setdefault(edge.source, []).append(edge)
        sources.setdefault(edge.target, []).append(edge)
    lines = []
    for node in view.nodes:
        before = sources.get(node.name, [])
        is_inside = len(before) == 1 and len(targets[before[0].source]) == 1
        if is_inside:
            continue
        line, name = node.name, node.name
        while len(targets.get(name, [])) == 1:
            (edge,) = targets[name]
            name = edge.target
            if len(sources[name]) > 1:
                line += f" ──▶ {name}"
                break
            line += f" ══▶ {name}" if edge.crosses else f" ── {name}"
        if len(targets.get(name, [])) > 1:
            line += f" ──▶ {', '.join(edge.target for edge in targets[name])}"
        lines.append(line)
    return lines
