"""Clipping by the global norm."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops

__all__ = ["clip_scale"]


def clip_scale(ops: Ops, norm: Array, *, max_norm: float) -> Array:
    """Factor that brings a gradient of norm `norm` down to `max_norm`; 1 when it is smaller.

    Pascanu et al. 2013 (arXiv 1211.5063), algorithm 1.

    Shapes: norm [] -> [].
    """
    return ops.clip(max_norm / (norm + 1e-6), 0.0, 1.0)
