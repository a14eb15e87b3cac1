"""A flow as seen from outside: nodes and edges with rates, depth and who waits; as JSON for the API, as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rollstream.clock import Clock
from rollstream.flow.description import Description
from rollstream.flow.meter import Meter
from rollstream.flow.node import Node
from rollstream.flow.step import Setting

__all__ = ["EdgeView", "FlowView", "NodeView", "Rates", "view_of"]

RATE_WINDOW_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One node: what it is (see `Node`), and what it does (see `Meter`); rates are over the last seconds.

    What runs in the actors is counted there, so here it shows None.
    """

    name: str
    kind: str
    where: str
    file: str
    line: int
    settings: Mapping[str, Setting]
    items: int | None
    items_per_s: float | None
    env_steps_per_s: float | None
    busy_s: float | None
    waited_s: float | None
    waits_for: str
    waits_s: float
    depth_items: int
    bound_items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeView:
    """From which node to which items go; `crosses` when it is from the actors to the learner."""

    source: str
    target: str
    crosses: bool
    items_per_s: float | None
    depth_items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowView:
    """A flow at one moment."""

    nodes: tuple[NodeView, ...]
    edges: tuple[EdgeView, ...]
    in_flight_env_steps: int

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def draw(self) -> str:
        """A line for each chain of nodes, then a line for each node that is at work.

        >>> print(runner.describe().draw())                                               # doctest: +SKIP
        rollouts ── advantages ══▶ gather_sync ── standardize ── update ── publish ── report
        """
        lines = [*self._chains(), ""]
        width = max(len(node.name) for node in self.nodes)
        for node in self.nodes:
            facts = [f"{node.name:<{width}}  {node.kind} in the {node.where}"]
            if node.items is not None:
                facts.append(f"{node.items} items")
            if node.items_per_s is not None:
                facts.append(f"{node.items_per_s:.1f} items/s")
            if node.bound_items:
                facts.append(f"holds {node.depth_items} of {node.bound_items}")
            if node.waits_for:
                facts.append(f"waits for {node.waits_for} since {node.waits_s:.1f} s")
            lines.append(", ".join(facts))
        return "\n".join(lines)

    def _chains(self) -> list[str]:
        targets: dict[str, list[EdgeView]] = {}
        sources: dict[str, int] = {}
        for edge in self.edges:
            targets.setdefault(edge.source, []).append(edge)
            sources[edge.target] = sources.get(edge.target, 0) + 1
        lines = []
        for node in self.nodes:
            is_inside = sources.get(node.name) == 1 and len(targets[self._source_of(node.name)]) == 1
            if is_inside:
                continue
            line, name = node.name, node.name
            while len(targets.get(name, [])) == 1:
                (edge,) = targets[name]
                name = edge.target
                if sources[name] > 1:
                    line += f" ──▶ {name}"
                    break
                line += f" ══▶ {name}" if edge.crosses else f" ── {name}"
            if len(targets.get(name, [])) > 1:
                line += f" ──▶ {', '.join(edge.target for edge in targets[name])}"
            lines.append(line)
        return lines

    def _source_of(self, name: str) -> str:
        return next(edge.source for edge in self.edges if edge.target == name)


class Rates:
    """Items and environment steps a second of every node, over the last five to ten seconds."""

    def __init__(self, clock: Clock, meters: Mapping[str, Meter]) -> None:
        self._clock = clock
        self._meters = meters
        self._older = self._newer = self._mark()

    def now_s(self) -> float:
        """The time by the clock that waits are measured with."""
        return self._clock.monotonic_s()

    def per_s(self) -> dict[str, tuple[float | None, float | None]]:
        """(items, environment steps) a second by node; None before any time has passed."""
        now_s, counts = self._mark()
        since_s, before = self._older
        if now_s - self._newer[0] >= RATE_WINDOW_S:
            self._older, self._newer = self._newer, (now_s, counts)
        elapsed_s = now_s - since_s
        if elapsed_s <= 0:
            return dict.fromkeys(counts, (None, None))
        return {
            name: ((items - before[name][0]) / elapsed_s, (steps - before[name][1]) / elapsed_s)
            for name, (items, steps) in counts.items()
        }

    def _mark(self) -> tuple[float, dict[str, tuple[int, int]]]:
        counts = {name: (meter.items, meter.env_steps) for name, meter in self._meters.items()}
        return self._clock.monotonic_s(), counts


def view_of(
    description: Description,
    meters: Mapping[str, Meter] | None = None,
    rates: Rates | None = None,
    *,
    in_flight_env_steps: int = 0,
) -> FlowView:
    """`description` as it stands, or as it runs when there are meters of it."""
    per_s = rates.per_s() if rates is not None else {}
    now_s = rates.now_s() if rates is not None else 0.0
    nodes = tuple(_node_view(node, (meters or {}).get(node.name), per_s.get(node.name), now_s) for node in description.nodes)
    depths = {node.name: node.depth_items for node in nodes}
    rate_of = {node.name: node.items_per_s for node in nodes}
    edges = tuple(
        EdgeView(
            source=before.name,
            target=node.name,
            crosses=before.where != node.where,
            items_per_s=rate_of[node.name if before.where != node.where else before.name],
            depth_items=depths[node.name],
        )
        for node in description.nodes
        for before in node.inputs
    )
    return FlowView(nodes=nodes, edges=edges, in_flight_env_steps=in_flight_env_steps)


def _node_view(node: Node, meter: Meter | None, per_s: tuple[float | None, float | None] | None, now_s: float) -> NodeView:
    is_here = meter is not None and node.where == "learner"
    at_work = meter if meter is not None and is_here else Meter()
    items_per_s, env_steps_per_s = per_s if per_s is not None and is_here else (None, None)
    return NodeView(
        name=node.name,
        kind=node.kind,
        where=node.where,
        file=node.place.file,
        line=node.place.line,
        settings=dict(node.settings),
        items=at_work.items if is_here else None,
        items_per_s=items_per_s,
        env_steps_per_s=env_steps_per_s,
        busy_s=at_work.busy_s if is_here else None,
        waited_s=at_work.waited_s if is_here else None,
        waits_for=at_work.waits_for,
        waits_s=max(0.0, now_s - at_work.waits_since_s) if at_work.waits_for else 0.0,
        depth_items=at_work.depth_items,
        bound_items=at_work.bound_items,
    )
