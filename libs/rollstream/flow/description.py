"""A complete flow: every node under its final name, checked. Both processes make the same one and take their part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rollstream.errors import ConfigError
from rollstream.flow.node import Node
from rollstream.flow.stream import Stream

__all__ = ["Description", "Edge", "gather_edge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Where items cross from the actors to the learner.

    Attributes:
        name: name of the gather, and of the stream in Redis.
        in_flight: messages that an actor may have unacknowledged.
        barrier: whether the learner waits for one message of every live actor.
        chain: the nodes that run in the actor, in order; the first is their source, `rollouts` or `generate`.
        stored: the rows of its items lie in a table; only counts cross.
    """

    name: str
    in_flight: int
    barrier: bool
    chain: tuple[Node, ...]
    stored: bool


class Description:
    """A flow as values.

    Args:
        stream: what the flow function returned.
        tables: names of the tables that there are; steps that need another one are refused. None: not checked.

    Raises:
        ConfigError: the flow cannot work; the message names the line of the flow page and what to do.
    """

    def __init__(self, stream: Stream[Any], *, tables: Sequence[str] | None = None) -> None:
        if not isinstance(stream, Stream):
            raise ConfigError(
                f"a flow ends in a stream, got {type(stream).__name__}; "
                "put gather_sync() or gather_async() behind shards and return that"
            )
        ordered = _inputs_first(stream.node)
        _check_used_once(ordered)
        _check_tables(ordered, tables)
        _check_batches(ordered)
        _check_queues(ordered)
        self.nodes: tuple[Node, ...] = _named(ordered)
        """All nodes, inputs before what uses them; the last is the root."""

    @property
    def root(self) -> Node:
        return self.nodes[-1]

    def node(self, name: str) -> Node:
        """The node called `name`."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise ConfigError(f"the flow has no node {name!r}; it has: {', '.join(node.name for node in self.nodes)}")

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Where items cross from the actors to the learner."""
        return tuple(gather_edge(node) for node in self.nodes if node.kind in ("gather_sync", "gather_async"))

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that steps need, in order of first use."""
        return tuple(dict.fromkeys(node.table for node in self.nodes if node.table))


def _inputs_first(root: Node) -> list[Node]:
    ordered: list[Node] = []
    seen: set[int] = set()

    def visit(node: Node) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        for before in node.inputs:
            visit(before)
        ordered.append(node)

    visit(root)
    return ordered


def _named(ordered: Sequence[Node]) -> tuple[Node, ...]:
    """Final names: a name that the user gave stays; equal names of our own are numbered in the order of the flow."""
    given = Counter(node.name for node in ordered if node.named)
    for node in ordered:
        if node.named and given[node.name] > 1:
            twins = " and ".join(str(other.place) for other in ordered if other.named and other.name == node.name)
            raise ConfigError(f"the name {node.name!r} is given twice, at {twins}; names must be unique in a flow")
    used = set(given)
    final: dict[int, Node] = {}
    for node in ordered:
        name = node.name
        if not node.named:
            number = 1
            while name in used:
                number += 1
                name = f"{node.name}_{number}"
            used.add(name)
        final[id(node)] = node.renamed(name, tuple(final[id(before)] for before in node.inputs))
    return tuple(final[id(node)] for node in ordered)


def _check_used_once(ordered: Sequence[Node]) -> None:
    users: dict[int, list[Node]] = {}
    for node in ordered:
        for before in node.inputs:
            users.setdefault(id(before), []).append(node)
    for node in ordered:
        by = users.get(id(node), [])
        if len(by) > 1 and node.kind != "duplicate" and not _is_shared_out(by):
            raise ConfigError(
                f"{node} is used {len(by)} times, by {' and '.join(str(user) for user in by)}; an item goes one way only: "
                f"use duplicate({len(by)}), or give the actors another rollouts(...)"
            )
        if node.kind == "duplicate" and len(by) != node.settings["copies"]:
            raise ConfigError(
                f"{node} makes {node.settings['copies']} copies, but {len(by)} are used; "
                "a copy that nobody pulls would hold the others up"
            )


def _is_shared_out(users: Sequence[Node]) -> bool:
    """Whether each user takes a part of its own: the agents of another policy."""
    policies = [user.settings["policy"] for user in users if user.step is not None and user.step.name == "select_policies"]
    return len(policies) == len(users) == len(set(policies))


def _check_tables(ordered: Sequence[Node], tables: Sequence[str] | None) -> None:
    for node in ordered:
        if node.table and tables is not None and node.table not in tables:
            raise ConfigError(
                f"{node} needs the table {node.table!r}, which is not declared; declared: {', '.join(tables) or 'none'}"
            )
        is_return = node.step is not None and node.step.name == "return_priorities"
        if is_return and node.table not in _sampled_before(node):
            raise ConfigError(
                f"{node} returns priorities to {node.table!r}, but its items are not samples of that table; "
                f"put it behind samples(...) of {node.table!r}"
            )


def _sampled_before(node: Node) -> set[str]:
    return {before.table for before in _inputs_first(node) if before.kind == "samples"}


def _check_batches(ordered: Sequence[Node]) -> None:
    for node in ordered:
        if node.kind == "batch" and _sampled_before(node):
            raise ConfigError(
                f"{node} counts environment steps, which samples of a table do not carry; use window(items=...) and concatenate()"
            )


def _check_queues(ordered: Sequence[Node]) -> None:
    """Every queue has one end that drains it and at least one that fills it, not one behind the other, of the same sizes."""
    ends = [node for node in ordered if node.kind in ("enqueue", "dequeue")]
    for name in dict.fromkeys(node.settings["queue"] for node in ends):
        of_queue = [node for node in ends if node.settings["queue"] == name]
        filled = [node for node in of_queue if node.kind == "enqueue"]
        drained = [node for node in of_queue if node.kind == "dequeue"]
        if not filled:
            raise ConfigError(f"{drained[0]} takes from queue {name!r}, which nobody fills; use enqueue(queue) in another branch")
        if len(drained) != 1:
            told = "nobody drains" if not drained else f"{' and '.join(str(node) for node in drained)} drain"
            raise ConfigError(f"{filled[0]} fills queue {name!r}, which {told}; use dequeue() of it in one other branch")
        if len({tuple(node.settings.items()) for node in of_queue}) > 1:
            raise ConfigError(
                f"there are two queues {name!r}, at {filled[0].place} and {drained[0].place}; give both ends the same Queue, "
                "or each queue a name of its own"
            )
        for node in filled:
            if drained[0] in _inputs_first(node):
                raise ConfigError(f"{node} fills queue {name!r} with what {drained[0]} takes out of it; such a circle never ends")


def gather_edge(node: Node) -> Edge:
    """The edge that ends in the gather `node`."""
    chain = tuple(_inputs_first(node)[:-1])
    in_flight = node.settings["in_flight"]
    assert isinstance(in_flight, int)
    return Edge(
        name=node.name,
        in_flight=in_flight,
        barrier=node.kind == "gather_sync",
        chain=chain,
        stored=any(before.step is not None and before.step.settles == "stored" for before in chain),
    )
