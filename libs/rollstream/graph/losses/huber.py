"""Squared error near zero, absolute error far away: one large error does not throw the network off."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops

__all__ = ["huber"]


def huber(ops: Ops, error: Array, *, delta: float) -> Array:
    """0.5 e² where |e| <= delta, else delta (|e| - 0.5 delta).

    Huber 1964; its gradient is the error clipping of Mnih et al. 2015 (Nature 518, Methods).

    Shapes: error [...] -> [...].
    """
    size = ops.abs(error)
    near = ops.clip(size, 0.0, delta)
    return near * (size - 0.5 * near)
