"""`Stream`: items in the learner, pulled one by one. Methods describe; nothing runs before a `Runner` is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from rollstream.errors import ConfigError
from rollstream.flow.node import Kind, Node, make_node, require_at_least
from rollstream.flow.place import calling_place
from rollstream.flow.step import Setting, StepLike, as_step

__all__ = ["Stream", "union"]

T = TypeVar("T")


class Stream(Generic[T]):
    """A description of items in the learner.

    Every operator takes `name=`, under which its state, rates and errors go; without one it has the name of its kind or step.
    """

    def __init__(self, node: Node) -> None:
        self.node = node

    def for_each(self, step: StepLike, *, name: str | None = None) -> Stream[Any]:
        """Apply `step` to every item, in order. A batch keeps its `env_steps`: to drop data use `filter`."""
        return self._stepped("for_each", step, name=name)

    def filter(self, step: StepLike, *, name: str | None = None) -> Stream[T]:
        """Keep the items for which `step` is true; environment steps of the others are counted as dropped."""
        return self._stepped("filter", step, name=name)

    def batch(self, *, steps: int, name: str | None = None) -> Stream[Any]:
        """Join batches until they have at least `steps` environment steps; a short rest comes out when the input ends."""
        require_at_least(1, steps, what="steps of batch")
        return self._next("batch", name=name, settings={"steps": steps}, gives="batch")

    def window(self, *, items: int, name: str | None = None) -> Stream[tuple[T, ...]]:
        """Tuples of `items` consecutive items that do not overlap; a short rest comes out when the input ends."""
        require_at_least(1, items, what="items of window")
        return self._next("window", name=name, settings={"items": items}, gives="batches" if self.node.gives else "")

    def flatten(self, *, name: str | None = None) -> Stream[Any]:
        """The members of every item, one by one. Members that are batches share out the item's environment steps."""
        return self._next("flatten", name=name, gives="batch" if self.node.gives == "batches" else "")

    def take(self, items: int, *, name: str | None = None) -> Stream[T]:
        """The first `items` items, then the end."""
        require_at_least(0, items, what="items of take")
        return self._next("take", name=name, settings={"items": items}, gives=self.node.gives)

    def prefetch(self, items: int, *, name: str | None = None) -> Stream[T]:
        """Pull up to `items` items ahead in a thread of its own. In inline mode: nothing, items are pulled when asked for."""
        require_at_least(1, items, what="items of prefetch")
        return self._next("prefetch", name=name, settings={"items": items}, gives=self.node.gives)

    def throttle(self, *, every_s: float | None = None, every_steps: int | None = None, name: str | None = None) -> Stream[T]:
        """Let one item through every `every_s` seconds or `every_steps` sampled environment steps; the others go no further."""
        if (every_s is None) == (every_steps is None):
            raise ConfigError(f"throttle takes either every_s or every_steps ({calling_place()})")
        if every_s is not None:
            require_at_least(0, every_s, what="every_s of throttle")
        if every_steps is not None:
            require_at_least(1, every_steps, what="every_steps of throttle")
        settings: dict[str, Setting] = {"every_s": every_s} if every_s is not None else {"every_steps": every_steps}
        return self._next("throttle", name=name, settings=settings, gives=self.node.gives)

    def duplicate(self, copies: int, *, name: str | None = None) -> tuple[Stream[T], ...]:
        """`copies` streams of the same items, each to be used once. Environment steps are counted with the first copy."""
        require_at_least(2, copies, what="copies of duplicate")
        shared = self._next("duplicate", name=name, settings={"copies": copies}, gives=self.node.gives).node
        return tuple(Stream(_copy_of(shared, index)) for index in range(copies))

    def report(self, *, every_s: float, name: str | None = None) -> Stream[Any]:
        """The end of a flow: a report every `every_s` seconds (0: after every item) on all that happened since the last."""
        require_at_least(0, every_s, what="every_s of report")
        return self._next("report", name=name, settings={"every_s": every_s}, gives="report")

    def _stepped(self, kind: Kind, step: StepLike, *, name: str | None) -> Stream[Any]:
        described = as_step(step, user=kind)
        if described.where == "actor":
            raise ConfigError(
                f"{described.name} runs in the actors, but {self.node} is in the learner ({calling_place()}); "
                "put it before the gather"
            )
        if described.takes and self.node.gives and described.takes != self.node.gives:
            raise ConfigError(
                f"{described.name} takes {described.takes}, but {self.node} gives {self.node.gives} ({calling_place()})"
            )
        node = make_node(
            kind,
            name=name,
            default_name=described.name,
            where="learner",
            inputs=(self.node,),
            settings=described.settings,
            step=described,
            table=described.table,
            gives=self.node.gives if kind == "filter" else described.gives,
        )
        return Stream(node)

    def _next(
        self, kind: Kind, *, name: str | None, settings: Mapping[str, Setting] | None = None, gives: str = ""
    ) -> Stream[Any]:
        node = make_node(kind, name=name, where="learner", inputs=(self.node,), settings=settings, gives=gives)
        return Stream(node)


def _copy_of(shared: Node, index: int) -> Node:
    return make_node(
        "copy",
        name=None,
        default_name=f"{shared.name}.{index + 1}",
        where="learner",
        inputs=(shared,),
        settings={"index": index},
        gives=shared.gives,
    )


def union(
    *streams: Stream[Any],
    mode: Literal["as_ready", "round_robin"] = "as_ready",
    weights: Sequence[int] | None = None,
    emit: Stream[Any] | Sequence[Stream[Any]] | None = None,
    name: str | None = None,
) -> Stream[Any]:
    """Several branches that all make progress; out come the items of those in `emit` (all of them when it is left out).

    `as_ready`: each branch goes at its own pace. A single emitted branch runs in the puller's own thread, the others in threads
    of their own. `round_robin`: one thread pulls `weights[i]` items of branch i in turn and waits for the branch whose turn it
    is; deterministic. In inline mode both take turns, and a branch that would have to wait is passed over.
    """
    where = calling_place()
    if not streams:
        raise ConfigError(f"union of nothing ({where}); give it at least one stream")
    for stream in streams:
        if not isinstance(stream, Stream):
            raise ConfigError(
                f"union takes streams, got {type(stream).__name__} ({where}); put gather_sync() or gather_async() behind shards"
            )
    if mode not in ("as_ready", "round_robin"):
        raise ConfigError(f"mode of union must be 'as_ready' or 'round_robin', got {mode!r} ({where})")
    if weights is not None:
        _check_weights(weights, len(streams), mode)
    chosen = streams if emit is None else (emit,) if isinstance(emit, Stream) else tuple(emit)
    emitted = [any(stream is wanted for wanted in chosen) for stream in streams]
    if not chosen or sum(emitted) < len(chosen):
        raise ConfigError(f"emit of union must be among its {len(streams)} branches ({where}); give the same stream to both")
    node = make_node(
        "union",
        name=name,
        where="learner",
        inputs=tuple(stream.node for stream in streams),
        settings={
            "mode": mode,
            "weights": ",".join(str(weight) for weight in (weights or [1] * len(streams))),
            "emit": ",".join(str(index) for index, wanted in enumerate(emitted) if wanted),
        },
        gives=_common_kind([stream.node for stream, wanted in zip(streams, emitted, strict=True) if wanted]),
    )
    return Stream(node)


def _check_weights(weights: Sequence[int], branches: int, mode: str) -> None:
    if mode != "round_robin":
        raise ConfigError(f"weights of union need mode='round_robin', got mode={mode!r} ({calling_place()})")
    if len(weights) != branches:
        raise ConfigError(f"union has {branches} branches but {len(weights)} weights ({calling_place()})")
    for weight in weights:
        if not isinstance(weight, int) or weight < 1:
            raise ConfigError(f"weights of union must be integers >= 1, got {weight!r} ({calling_place()})")


def _common_kind(nodes: Sequence[Node]) -> str:
    kinds = {node.gives for node in nodes}
    return kinds.pop() if len(kinds) == 1 else ""
