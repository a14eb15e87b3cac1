"""A flow as seen from outside: nodes and edges with rates, depth and who waits; as JSON for the API, as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from rollstream.errors import SchemaMismatch
from rollstream.flow.bottleneck import Bottleneck, find_bottleneck
from rollstream.flow.description import Description
from rollstream.flow.meter import Meter
from rollstream.flow.node import Node
from rollstream.flow.rates import NodeWork, Rates
from rollstream.flow.step import Setting

__all__ = ["EdgeView", "FlowView", "NodeView", "view_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One node: what it is (see `Node`), and what it does (see `NodeWork`); rates and shares are over the last seconds.

    What runs in the actors is counted there: None where they have not told.

    Attributes:
        table: replay table that it reads or writes; empty for none.
        learns: whether its items count as trained on.
        processes: actors that told of it; 1 in the learner.
    """

    name: str
    kind: str
    where: str
    file: str
    line: int
    settings: Mapping[str, Setting]
    table: str = ""
    learns: bool = False
    items: int | None
    items_per_s: float | None
    env_steps_per_s: float | None
    busy_s: float | None
    waited_s: float | None
    busy_share: float | None = None
    waited_share: float | None = None
    waits_for: str
    waits_s: float
    depth_items: int
    bound_items: int
    processes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeView:
    """From which node to which items go.

    Attributes:
        crosses: whether it is from the actors to the learner.
        in_flight: messages that an actor may be ahead; 0 inside a process. barrier: whether rounds wait for every live actor.
    """

    source: str
    target: str
    crosses: bool
    in_flight: int = 0
    barrier: bool = False
    items_per_s: float | None
    depth_items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowView:
    """A flow at one moment; `bottleneck` is None while it does not run."""

    nodes: tuple[NodeView, ...]
    edges: tuple[EdgeView, ...]
    in_flight_env_steps: int
    bottleneck: Bottleneck | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> FlowView:
        """The inverse of `to_json`; unknown fields (of a newer release) are passed over."""
        try:
            return msgspec.convert(dict(data), FlowView)
        except msgspec.ValidationError as error:
            raise SchemaMismatch(f"not a flow: {error}; control and this command are of different releases") from error

    def draw(self) -> str:
        """A line for each chain of nodes, then a line for each node that is at work.

        >>> print(runner.describe().draw())                                               # doctest: +SKIP
        rollouts ── advantages ══▶ gather_sync ── standardize ── update ── publish ── report
        """
        from rollstream.flow.drawing.chains import chains

        lines = [*chains(self), ""]
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


def view_of(
    description: Description,
    meters: Mapping[str, Meter] | None = None,
    rates: Rates | None = None,
    *,
    actors: Mapping[str, NodeWork] | None = None,
    in_flight_env_steps: int = 0,
) -> FlowView:
    """`description` as it stands, or as it runs when there are meters of it.

    Args:
        actors: what the actors told of their nodes (`together`).
    """
    work = rates.work() if rates is not None else {}
    now_s = rates.now_s() if rates is not None else 0.0
    told = {name: done for name, done in work.items() if description.node(name).where == "learner"} | dict(actors or {})
    nodes = tuple(_node_view(node, (meters or {}).get(node.name), told.get(node.name), now_s) for node in description.nodes)
    shown = {node.name: node for node in nodes}
    edges = tuple(_edge_view(before, node, shown) for node in description.nodes for before in node.inputs)
    bottleneck = find_bottleneck(nodes, edges) if rates is not None else None
    return FlowView(nodes=nodes, edges=edges, in_flight_env_steps=in_flight_env_steps, bottleneck=bottleneck)


def _edge_view(before: Node, node: Node, shown: Mapping[str, NodeView]) -> EdgeView:
    crosses = before.where != node.where
    counted = shown[node.name if crosses else before.name]
    in_flight = node.settings.get("in_flight") if crosses else 0
    return EdgeView(
        source=before.name,
        target=node.name,
        crosses=crosses,
        in_flight=in_flight if isinstance(in_flight, int) else 0,
        barrier=node.kind == "gather_sync",
        items_per_s=counted.items_per_s,
        depth_items=shown[node.name].depth_items,
    )


def _node_view(node: Node, meter: Meter | None, work: NodeWork | None, now_s: float) -> NodeView:
    at_work = meter if meter is not None and node.where == "learner" else Meter()
    return NodeView(
        name=node.name,
        kind=node.kind,
        where=node.where,
        file=node.place.file,
        line=node.place.line,
        settings=dict(node.settings),
        table=node.table,
        learns=node.step is not None and node.step.settles == "trained",
        items=work.items if work is not None else None,
        items_per_s=work.items_per_s if work is not None else None,
        env_steps_per_s=work.env_steps_per_s if work is not None else None,
        busy_s=work.busy_s if work is not None else None,
        waited_s=work.waited_s if work is not None else None,
        busy_share=work.busy_share if work is not None else None,
        waited_share=work.waited_share if work is not None else None,
        waits_for=at_work.waits_for,
        waits_s=max(0.0, now_s - at_work.waits_since_s) if at_work.waits_for else 0.0,
        depth_items=at_work.depth_items,
        bound_items=at_work.bound_items or _declared_bound(node),
        processes=work.processes if work is not None else 1,
    )


def _declared_bound(node: Node) -> int:
    """How many items a node that has not begun will hold at most."""
    bound = node.settings.get("items") if node.kind == "prefetch" else 0
    return bound if isinstance(bound, int) else 0
