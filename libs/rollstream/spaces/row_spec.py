"""Row layout: which columns one environment step has, as a packed NumPy structured dtype that is its own decoder.

    flags u1 | version u4 | observation... | action... | reward f4 | what the algorithm adds (log_prob, value, ...)

An episode of T steps is T+1 rows: row t holds observation t, action t and the reward of that action; the last row holds the
final observation alone (flags FINAL and TERMINATED or TRUNCATED). So each observation is stored once, and n-step returns and
bootstrapping read contiguous rows with no special case.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import cached_property
from typing import Any

import numpy as np

from rollstream.errors import ConfigError, SchemaMismatch

__all__ = ["Column", "Flag", "RowSpec"]


class Flag(IntFlag):
    """Bits of a row's `flags`."""

    FIRST = 1
    """First row of an episode."""
    TERMINATED = 2
    """With FINAL: the environment ended the episode; the value after it is 0. Wins over TRUNCATED when both happened."""
    TRUNCATED = 4
    """With FINAL: a limit ended the episode; its value is bootstrapped from the final observation."""
    FINAL = 8
    """Holds the final observation of an episode: no action was taken, nothing may be learned from its action or reward."""
    PAD = 16
    """Not a row: fills the last chunk of an episode or the tail of a sampled run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a row: dotted name, little-endian NumPy dtype string (`<f4`, `|u1`), shape of one row's entry."""

    name: str
    dtype: str
    shape: tuple[int, ...] = ()

    @property
    def row_bytes(self) -> int:
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class RowSpec:
    """The ordered columns of a table's rows or of an edge's messages (without `flags` and `version`, which all rows have)."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        for name in names:
            if names.count(name) > 1 or name in ("flags", "version"):
                raise ConfigError(f"column name {name!r} is used twice; flags and version are always there, rename yours")

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """Packed structured dtype: flags, version, then the columns in order."""
        fields: list[Any] = [("flags", "u1"), ("version", "<u4")]
        fields += [(column.name, column.dtype, column.shape) for column in self.columns]
        return np.dtype(fields)

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize

    @cached_property
    def hash(self) -> str:
        """16 hex digits; equal for equal columns in equal order, on every machine."""
        return hashlib.sha256(json.dumps(self.to_json()).encode()).hexdigest()[:16]

    @property
    def fields(self) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
        """(name, dtype, shape) of each column: the hashable form of `to_json`."""
        return tuple((column.name, column.dtype, column.shape) for column in self.columns)

    def to_json(self) -> list[list[Any]]:
        """`[[name, dtype, [shape]], ...]`."""
        return [[column.name, column.dtype, list(column.shape)] for column in self.columns]

    @staticmethod
    def from_json(data: Sequence[Sequence[Any]]) -> RowSpec:
        return RowSpec(tuple(Column(name=name, dtype=dtype, shape=tuple(shape)) for name, dtype, shape in data))

    def require_equal(self, other: RowSpec, *, ours: str, theirs: str) -> None:
        """Raise `SchemaMismatch` that names the first column in which `ours` (self) and `theirs` (other) differ."""
        if self.columns == other.columns:
            return
        mine, others = list(self.columns), list(other.columns)
        for index in range(max(len(mine), len(others))):
            left = mine[index] if index < len(mine) else None
            right = others[index] if index < len(others) else None
            if left != right:
                raise SchemaMismatch(
                    f"row columns differ: {ours} has {_column_text(left)} where {theirs} has {_column_text(right)}; "
                    "use the same environment and settings on both sides, or a new table"
                )


def _column_text(column: Column | None) -> str:
    return "no column" if column is None else f"{column.name} {column.dtype}{list(column.shape)}"
