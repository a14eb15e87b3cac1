"""One action without chance, in (-1, 1) to the F, and the noise that explores around it."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops

__all__ = ["mode", "perturbed"]


def mode(ops: Ops, x: Array) -> Array:
    """tanh(x): the action, [B, F]."""
    return ops.tanh(x)


def perturbed(ops: Ops, action: Array, noise: Array, *, scale: Array | float, limit: Array | float | None = None) -> Array:
    """`action` plus `scale` times `noise`, which is cut at `limit` (target smoothing: Fujimoto et al. 2018, arXiv 1802.09477,
    equation 15); the result stays in [-1, 1].

    Shapes: action, noise [B, F]; scale [] or [B, 1] -> [B, F].
    """
    moved = noise * scale
    if limit is not None:
        moved = ops.clip(moved, -limit, limit)
    return ops.clip(action + moved, -1.0, 1.0)
