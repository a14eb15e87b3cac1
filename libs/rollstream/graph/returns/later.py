"""Looking one row ahead in a series."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops

__all__ = ["later"]


def later(ops: Ops, series_t: Array) -> Array:
    """What stands in row t+1; 0 after the last.

    Shapes: series_t [T, ...] -> the same.
    """
    return ops.concatenate([series_t[1:], ops.zeros_like(series_t[:1])], axis=0)
