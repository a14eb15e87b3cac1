"""The one bottleneck of a running flow, in words: who waits for whom, and for how much of the time.

The learner's share is that of the waits in the thread that trains: from the node that trains upstream to the first thread boundary or
source. The actors' share is that of their rollouts (no credit: the learner has not used what they sent) and of their tables (full).
The side that waits less is the one to make faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rollstream.flow.view import EdgeView, NodeView

__all__ = ["Bottleneck", "find_bottleneck"]

NOBODY_WAITS = 0.1
"""Below this share nobody waits to speak of, and the busiest node is what counts."""
EACH_OTHER = 1.5
"""Shares that add up to this mean that both sides wait most of the time: what lies between them is slow."""
GATHERS = ("gather_sync", "gather_async")
BOUNDARIES = ("prefetch", "dequeue")
"""Nodes whose input is pulled by another thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """Who waits, for whom, and for which share of the time (0 to 1); `who` is empty when nobody waits to speak of."""

    who: str
    for_whom: str
    share: float
    sentence: str


def find_bottleneck(nodes: Sequence[NodeView], edges: Sequence[EdgeView]) -> Bottleneck | None:
    """The bottleneck; None while nothing has been measured."""
    if all(node.busy_share is None and node.waited_share is None for node in nodes):
        return None
    graph = _Graph(nodes, edges)
    learner, actors = graph.learner_wait(), graph.actors_wait()
    learner_share, actors_share = _waited(learner), _waited(actors)
    if learner is not None and actors is not None and learner_share + actors_share >= EACH_OTHER:
        return _each_other(learner_share, actors_share, graph.source_behind(learner))
    if max(learner_share, actors_share) < NOBODY_WAITS:
        return _busiest(nodes)
    if learner is not None and learner_share >= actors_share:
        return _learner_waits(learner_share, graph, learner)
    assert actors is not None
    return _actors_wait(actors_share, graph, actors)


class _Graph:
    """Nodes by name, with what they pull from."""

    def __init__(self, nodes: Sequence[NodeView], edges: Sequence[EdgeView]) -> None:
        self.nodes: Mapping[str, NodeView] = {node.name: node for node in nodes}
        self.inputs: dict[str, list[NodeView]] = {node.name: [] for node in nodes}
        for edge in edges:
            self.inputs[edge.target].append(self.nodes[edge.source])

    def learner_wait(self) -> NodeView | None:
        """Of the thread that trains, the node that waits most."""
        training = [node for node in self.nodes.values() if node.learns] or list(self.nodes.values())[-1:]
        waiting = [node for start in training for node in self._same_thread(start) if node.where == "learner"]
        return max(waiting, key=_waited, default=None)

    def actors_wait(self) -> NodeView | None:
        """Of the actors' nodes, the one that waits most; None when they have not told."""
        told = [node for node in self.nodes.values() if node.where == "actor" and node.waited_share is not None]
        return max(told, key=_waited, default=None)

    def source_behind(self, node: NodeView) -> NodeView:
        """The gather or table that `node` waits for: itself, or of those upstream the one that waits most."""
        sources = [found for found in self._upstream(node) if found.kind in GATHERS or found.kind == "samples"]
        return max(sources, key=_waited, default=node)

    def busiest(self, where: str) -> NodeView | None:
        """The node there that works most."""
        return max((node for node in self.nodes.values() if node.where == where), key=_busy, default=None)

    def _same_thread(self, node: NodeView) -> Iterable[NodeView]:
        yield node
        is_boundary = node.kind in (*GATHERS, *BOUNDARIES) or (node.kind == "union" and node.bound_items > 0)
        if not is_boundary:
            for before in self.inputs[node.name]:
                yield from self._same_thread(before)

    def _upstream(self, node: NodeView) -> Iterable[NodeView]:
        yield node
        if node.kind not in GATHERS:
            for before in self.inputs[node.name]:
                yield from self._upstream(before)


def _learner_waits(share: float, graph: _Graph, node: NodeView) -> Bottleneck:
    source = graph.source_behind(node)
    whom = "actors"
    if source.kind == "samples":
        whom = f"actors to fill table {source.table}" if graph.busiest("actor") is not None else f"table {source.table}"
    return _said("learner", whom, share, f"learner waits for {whom}", graph.busiest("actor"))


def _actors_wait(share: float, graph: _Graph, node: NodeView) -> Bottleneck:
    whom = f"the learner to empty table {node.table}" if node.table else "the learner"
    return _said("actors", whom, share, f"actors wait for {whom}", graph.busiest("learner"))


def _said(who: str, for_whom: str, share: float, words: str, busiest: NodeView | None) -> Bottleneck:
    hint = f" ({busiest.name} works {_percent(_busy(busiest))})" if busiest is not None and _busy(busiest) > 0 else ""
    return Bottleneck(who=who, for_whom=for_whom, share=share, sentence=f"{words}: {_percent(share)} of the time{hint}")


def _each_other(learner_share: float, actors_share: float, source: NodeView) -> Bottleneck:
    between = f"table {source.table}" if source.kind == "samples" else f"edge {source.name}"
    sentence = (
        f"learner and actors wait for each other: {_percent(learner_share)} and {_percent(actors_share)} of the time; "
        f"what lies between them, {between}, is slow or too short"
    )
    return Bottleneck(who="both", for_whom="each other", share=max(learner_share, actors_share), sentence=sentence)


def _busiest(nodes: Sequence[NodeView]) -> Bottleneck:
    node = max(nodes, key=_busy)
    place = "the learner" if node.where == "learner" else "the actors"
    return Bottleneck(
        who="",
        for_whom=node.name,
        share=_busy(node),
        sentence=f"nobody waits; {node.name} in {place} works {_percent(_busy(node))} of the time",
    )


def _waited(node: NodeView | None) -> float:
    return (node.waited_share or 0.0) if node is not None else 0.0


def _busy(node: NodeView) -> float:
    return node.busy_share or 0.0


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
