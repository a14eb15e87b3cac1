"""`union`: several branches of a flow as one stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeVar, overload

from rollstream.errors import ConfigError
from rollstream.flow.node import Node, make_node
from rollstream.flow.place import calling_place
from rollstream.flow.stream import Stream

__all__ = ["union"]

T = TypeVar("T")
Mode: TypeAlias = Literal["as_ready", "round_robin"]


@overload
def union(
    *streams: Stream[Any],
    emit: Stream[T] | Sequence[Stream[T]],
    mode: Mode = "as_ready",
    weights: Sequence[float] | None = None,
    name: str | None = None,
) -> Stream[T]:
    """Items of the emitted branches."""


@overload
def union(
    *streams: Stream[T],
    emit: None = None,
    mode: Mode = "as_ready",
    weights: Sequence[float] | None = None,
    name: str | None = None,
) -> Stream[T]:
    """Items of all branches."""


def union(
    *streams: Stream[Any],
    emit: Stream[Any] | Sequence[Stream[Any]] | None = None,
    mode: Mode = "as_ready",
    weights: Sequence[float] | None = None,
    name: str | None = None,
) -> Stream[Any]:
    """Several branches that all make progress; out come the items of those in `emit` (all of them when it is left out).

    `as_ready`: each branch goes at its own pace. A single emitted branch runs in the puller's own thread, the others in threads
    of their own. `round_robin`: one thread pulls `weights[i]` items of branch i in turn and waits for the branch whose turn it
    is; deterministic. A weight may be a fraction: of 2.5, two and three items in turn; of 0.25, one item every fourth time. In
    inline mode both take turns, and a branch that would have to wait is passed over.
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


def _check_weights(weights: Sequence[float], branches: int, mode: str) -> None:
    if mode != "round_robin":
        raise ConfigError(f"weights of union need mode='round_robin', got mode={mode!r} ({calling_place()})")
    if len(weights) != branches:
        raise ConfigError(f"union has {branches} branches but {len(weights)} weights ({calling_place()})")
    for weight in weights:
        if not isinstance(weight, (int, float)) or isinstance(weight, bool) or not 0 < weight < math.inf:
            raise ConfigError(f"weights of union must be numbers > 0, got {weight!r} ({calling_place()})")


def _common_kind(nodes: Sequence[Node]) -> str:
    kinds = {node.gives for node in nodes}
    return kinds.pop() if len(kinds) == 1 else ""
