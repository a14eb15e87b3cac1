"""What an API of a component takes, declared from spaces alone, so it can be built, traced and tested without an environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch
from rollstream.graph.ops import Array
from rollstream.spaces import Leaf

__all__ = ["Argument", "Arguments", "Input", "bind", "columns_of", "fill", "flat_inputs", "sample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One array that goes into an API.

    Attributes:
        name: the column (or setting) it is filled from.
        dtype, shape: of one row's entry.
        role: `column` comes from rows, `noise` is drawn by whoever runs the API, `scalar` is a setting that may change between
            calls (epsilon, clip ratio).
        noise: how noise is drawn: uniform in [0, 1), or standard normal.
        per_row: has a leading batch axis; only scalars may lack it.
        low, high: range from which tests draw examples: integers in [low, high), floats in [low, high).
    """

    name: str
    dtype: str = "<f4"
    shape: tuple[int, ...] = ()
    role: Literal["column", "noise", "scalar"] = "column"
    noise: Literal["uniform", "normal"] = "uniform"
    per_row: bool = True
    low: float = -1.0
    high: float = 1.0

    def full_shape(self, rows: int) -> tuple[int, ...]:
        return (rows, *self.shape) if self.per_row else self.shape


Argument: TypeAlias = Input | tuple[Input, ...]
"""One array, or (a tuple) a mapping of columns such as an observation."""

Arguments: TypeAlias = Mapping[str, Argument]
"""Keyword arguments of an API by their Python name."""


def columns_of(leaves: tuple[Leaf, ...], *, prefix: str = "") -> tuple[Input, ...]:
    """One input per leaf; `prefix` goes in front of each name (`next_`)."""
    return tuple(_column(leaf, prefix) for leaf in leaves)


def _column(leaf: Leaf, prefix: str) -> Input:
    low, high = -1.0, 1.0
    if leaf.kind == "multi_binary":
        low, high = 0.0, 2.0
    elif leaf.counts:
        low = float(max(leaf.starts))
        high = float(min(start + count for start, count in zip(leaf.starts, leaf.counts, strict=True)))
        if low >= high:  # no number suits all: some will get one that is none of its choices
            low, high = (
                float(min(leaf.starts)),
                float(max(start + count for start, count in zip(leaf.starts, leaf.counts, strict=True))),
            )
    elif np.dtype(leaf.dtype).kind in "iu":
        low, high = 0.0, 2.0
    return Input(name=prefix + leaf.name, dtype=leaf.dtype, shape=leaf.shape, low=low, high=high)


def flat_inputs(arguments: Arguments) -> Iterator[Input]:
    """All inputs in order, those inside mappings too."""
    for argument in arguments.values():
        if isinstance(argument, tuple):
            yield from argument
        else:
            yield argument


def bind(arguments: Arguments, arrays: Mapping[str, Array], *, prefix: str = "") -> dict[str, Any]:
    """Keyword arguments for the API from arrays by input name. Names of columns inside a mapping lose `next_`, so that the same
    component reads an observation and the next one."""
    bound: dict[str, Any] = {}
    for name, argument in arguments.items():
        if isinstance(argument, tuple):
            bound[name] = {item.name.removeprefix("next_"): arrays[item.name] for item in argument}
        else:
            bound[name] = arrays[argument.name]
    return bound


def sample(arguments: Arguments, *, rows: int, generator: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    """Random examples of every input, from its range."""
    return {item.name: _example(item, item.full_shape(rows), generator) for item in flat_inputs(arguments)}


def _example(item: Input, shape: tuple[int, ...], generator: np.random.Generator) -> npt.NDArray[Any]:
    dtype = np.dtype(item.dtype)
    if item.role == "noise" and item.noise == "normal":
        return generator.standard_normal(shape).astype(dtype)
    if dtype.kind == "f":
        low, high = (0.0, 1.0) if item.role == "noise" else (item.low, item.high)
        return np.asarray(generator.uniform(low, high, shape)).astype(dtype)
    return np.asarray(generator.integers(int(item.low), int(item.high), shape)).astype(dtype)


def fill(buffer: npt.NDArray[Any], value: npt.NDArray[Any], *, name: str, where: str) -> None:
    """Copy a column into its buffer. The one place where a dtype may change: to the declared one, never float to integer.

    Raises:
        SchemaMismatch: names the column, and both shapes or dtypes.
    """
    if value.shape != buffer.shape:
        raise SchemaMismatch(f"{where}: column {name} has shape {list(value.shape)}, built for {list(buffer.shape)}")
    try:
        np.copyto(buffer, value, casting="same_kind")
    except TypeError as error:
        raise SchemaMismatch(f"{where}: column {name} is {value.dtype}, which does not convert to {buffer.dtype}") from error
