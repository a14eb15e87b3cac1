"""Which encoding `auto` stands for: decided by the rows alone, so that writers and readers agree without asking."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rollstream.spaces import RowSpec

__all__ = ["FRAME_BYTES", "choose_encoding", "frame_columns"]

LARGE_ROW_BYTES = 2048
FRAME_BYTES = 1024


def frame_columns(row_spec: RowSpec) -> tuple[str, ...]:
    """Columns of integers that take `FRAME_BYTES` or more a row: pictures, whose neighbours resemble each other."""
    return tuple(
        column.name
        for column in row_spec.columns
        if column.row_bytes >= FRAME_BYTES and np.issubdtype(np.dtype(column.dtype), np.integer)
    )


def choose_encoding(row_spec: RowSpec) -> Literal["raw", "zstd"]:
    """`zstd` for rows of `LARGE_ROW_BYTES` and more with a frame in them, else `raw`.

    Floats hardly compress, and of small rows the fixed cost of a call exceeds what is saved.
    """
    return "zstd" if row_spec.row_bytes >= LARGE_ROW_BYTES and frame_columns(row_spec) else "raw"
