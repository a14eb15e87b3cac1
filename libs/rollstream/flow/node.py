"""Nodes: one operator of a flow each, described by values, so that both processes build the same description.

rollouts ── advantages ──▶ gather_sync ── standardize ── update ── publish ── report
╰── in each actor ──────╯ edge ╰── in the learner ─────────────────────────────────╯
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from rollstream.errors import ConfigError
from rollstream.flow.place import Place, calling_place
from rollstream.flow.step import Setting, Step

__all__ = ["Kind", "Node", "Side", "make_node", "require_at_least"]

Side: TypeAlias = Literal["actor", "learner"]
Kind: TypeAlias = Literal[
    "rollouts",
    "generate",
    "samples",
    "for_each",
    "filter",
    "gather_sync",
    "gather_async",
    "batch",
    "flatten",
    "take",
    "window",
    "prefetch",
    "throttle",
    "duplicate",
    "copy",
    "zip_with_source",
    "mix_replay",
    "enqueue",
    "dequeue",
    "union",
    "report",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """One operator of a flow.

    Attributes:
        name: unique in its flow; state, rates and errors go by it.
        named: whether the user chose the name; if not, equal names are numbered when the flow is complete.
        kind: which operator.
        where: the process it runs in. A gather runs in the learner; its input runs in the actors.
        inputs: the nodes that it pulls from.
        settings: what it was given.
        place: the line of the flow page that made it.
        step: what it applies, for `for_each` and `filter`.
        table: the replay table that it needs; empty for none.
        gives: kind of items that come out, see `Step.gives`.
    """

    name: str
    named: bool
    kind: Kind
    where: Side
    inputs: tuple[Node, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    place: Place
    step: Step | None = None
    table: str = ""
    gives: str = ""

    def renamed(self, name: str, inputs: tuple[Node, ...]) -> Node:
        """The same operator under its final name, over the final forms of its inputs."""
        return replace(self, name=name, inputs=inputs)

    def __str__(self) -> str:
        return f"{self.name} ({self.place})"


def make_node(
    kind: Kind,
    *,
    name: str | None,
    default_name: str = "",
    where: Side,
    inputs: tuple[Node, ...] = (),
    settings: Mapping[str, Setting] | None = None,
    step: Step | None = None,
    table: str = "",
    gives: str = "",
) -> Node:
    """A node placed at the line of the flow page that is being read."""
    if name is not None and not name.strip():
        raise ConfigError(f"the name of a {kind} must not be empty ({calling_place()}); leave it out for a name of its own")
    return Node(
        name=name if name is not None else default_name or kind,
        named=name is not None,
        kind=kind,
        where=where,
        inputs=inputs,
        settings=dict(settings or {}),
        place=calling_place(),
        step=step,
        table=table,
        gives=gives,
    )


def require_at_least(minimum: float, value: float, *, what: str) -> None:
    """Refuse a size or an interval below `minimum`, naming the line of the flow page."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= minimum:
        raise ConfigError(f"{what} must be >= {minimum}, got {value!r} ({calling_place()})")
