"""What recurrent policies remember, as columns: from one `act` to the next, in rows, and where sequences begin.

    act(observation t, recurrent t, first t) -> action t, recurrent t + 1        rows hold recurrent t, as it was before the step

`first` is 1 where an episode begins: what was remembered counts as 0 there, inside the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.ops import Array, Ops
from rollstream.spaces import Column

__all__ = ["FIRST", "PREFIX", "after", "flattened", "memory_columns", "memory_inputs", "unflattened"]

FIRST = "first"
PREFIX = "recurrent."


def memory_columns(sizes: Mapping[str, int]) -> tuple[Column, ...]:
    """One column `recurrent.<name>` for each part that remembers."""
    return tuple(Column(name=PREFIX + name, dtype="<f4", shape=(size,)) for name, size in sizes.items())


def memory_inputs(sizes: Mapping[str, int], *, steps: int | None = None) -> Arguments:
    """The arguments `recurrent` and `first` of an API; `first` of each step, when there are several. None for no memory."""
    if not sizes:
        return {}
    columns = tuple(Input(name=column.name, shape=column.shape) for column in memory_columns(sizes))
    first = Input(name=FIRST, shape=() if steps is None else (steps,), low=0.0, high=1.0)
    return {"recurrent": columns, "first": first}


def after(recurrent: Mapping[str, Array] | None, first: Array | None) -> dict[str, Array]:
    """What is remembered at a step [B, S]: 0 where an episode begins."""
    if recurrent is None or first is None:
        return {}
    keep = (1.0 - first)[:, None]
    return {name: state * keep for name, state in recurrent.items()}


def unflattened(inputs: tuple[Input, ...], *, steps: int) -> tuple[Input, ...]:
    """The same inputs with an axis of steps behind that of rows."""
    return tuple(replace(item, shape=(steps, *item.shape)) for item in inputs)


def flattened(ops: Ops, columns: Mapping[str, Array], first: Array) -> dict[str, Array]:
    """[B, T, ...] -> [B * T, ...]."""
    rows, steps = first.shape
    return {name: ops.reshape(x, (rows * steps, *x.shape[2:])) for name, x in columns.items()}
