"""Discrete spaces of any start: heads count choices from 0, environments from `start`; only this file converts."""

from __future__ import annotations

import numpy as np

from rollstream.errors import SpaceError
from rollstream.graph.ops import Array, Ops
from rollstream.spaces import Leaf

__all__ = ["choices", "index_to_value", "require_discrete", "value_to_index"]


def require_discrete(leaf: Leaf, *, where: str) -> None:
    """Refuse every action space other than Discrete.

    Args:
        where: component path and API, e.g. `QPolicy.act`.

    Raises:
        SpaceError: names the space, the component, the API, the argument, and what to use instead.
    """
    if leaf.kind == "discrete":
        return
    instead = {
        "box": "use an algorithm for continuous actions, such as ppo, or wrap it in gymnasium.wrappers.DiscretizeAction",
        "multi_discrete": "use ppo, or wrap the environment so that each combination of choices is one value of a Discrete space",
        "multi_binary": "use ppo, or wrap the environment so that each combination of bits is one value of a Discrete space",
    }[leaf.kind]
    raise SpaceError(f"{leaf.name}: {where}, argument action: needs a Discrete space, got {_describe(leaf)}; {instead}")


def choices(leaf: Leaf) -> int:
    """Number of actions of a Discrete leaf."""
    return leaf.counts[0]


def index_to_value(leaf: Leaf, index: Array) -> Array:
    """What the environment calls the choices `index` (0 to n-1)."""
    return index + leaf.starts[0] if leaf.starts[0] else index


def value_to_index(ops: Ops, leaf: Leaf, value: Array) -> Array:
    """Choices 0 to n-1, int64, of values of the environment, [B] or, for a MultiDiscrete leaf, [B, K].

    Where values do not start at 0, what is no value counts as the nearest one: graphs are traced, and buffers begin, with zeros.
    """
    index = ops.to_int(value)
    if not any(leaf.starts):
        return index
    starts, counts = (np.asarray(each if leaf.shape else each[0], np.int64) for each in (leaf.starts, leaf.counts))
    index = index - ops.constant(starts)
    return ops.minimum(ops.maximum(index, ops.zeros_like(index)), ops.constant(np.asarray(counts - 1)))


def _describe(leaf: Leaf) -> str:
    if leaf.kind != "box":
        return f"{leaf.kind} {list(leaf.counts or leaf.shape)}"
    bounded = np.isfinite(leaf.low).all() and np.isfinite(leaf.high).all() and leaf.low
    bounds = f"bounds {min(leaf.low)} to {max(leaf.high)}" if bounded else "no finite bounds"
    return f"Box {list(leaf.shape)} with {bounds}"
