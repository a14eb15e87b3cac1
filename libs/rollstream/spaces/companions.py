"""Columns whose entries vary in length or may be absent: each has a companion column that says how much of it is there.

    ragged    tokens i4[max_n]    tokens.length u2    how many of the max_n entries are there, from the first; the rest is zeros
    optional  goal f4[3]          goal.present u1     1 where a step gave the column, 0 where it did not; then it is zeros

So a row keeps its fixed size, and a mask is one comparison. A writer fills companions in, a reader asks `Sample.mask_of`.
"""

from __future__ import annotations

import numpy as np

from rollstream.errors import ConfigError
from rollstream.spaces.row_spec import Column

__all__ = ["length_name", "optional", "present_name", "ragged"]


def length_name(column: str) -> str:
    """Name of the companion of a ragged column."""
    return f"{column}.length"


def present_name(column: str) -> str:
    """Name of the companion of an optional column."""
    return f"{column}.present"


def ragged(column: Column) -> tuple[Column, Column]:
    """A column of up to `column.shape[0]` entries a row, and its companion of two bytes (four above 65,535 entries).

    >>> [part.name for part in ragged(Column(name="tokens", dtype="<i4", shape=(16,)))]
    ['tokens', 'tokens.length']
    """
    if not column.shape or column.shape[0] < 1:
        raise ConfigError(
            f"ragged column {column.name!r} needs the shape (max_n, ...) with max_n >= 1, got {column.shape}; give the most "
            "entries that a step may have"
        )
    dtype = "<u2" if column.shape[0] <= np.iinfo(np.uint16).max else "<u4"
    return column, Column(name=length_name(column.name), dtype=dtype)


def optional(column: Column) -> tuple[Column, Column]:
    """A column that a step may leave out, and its companion of one byte.

    >>> [part.name for part in optional(Column(name="goal", dtype="<f4", shape=(3,)))]
    ['goal', 'goal.present']
    """
    return column, Column(name=present_name(column.name), dtype="|u1")
