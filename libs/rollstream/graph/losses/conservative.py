"""The conservative term of offline Q-learning: actions that nobody took must not look better than those that were."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops

__all__ = ["conservative_penalty"]


def conservative_penalty(ops: Ops, q: Array, taken: Array) -> Array:
    """log sum over a of exp Q(s, a)  -  Q(s, a taken): CQL(H) of Kumar et al. 2020 (arXiv 2006.04779), equation 4.

    It is the cross-entropy of the action taken, with values for logits; never below 0.

    Shapes: q [B, A], taken int64 [B] -> [B].
    """
    return -ops.pick(ops.log_softmax(q), taken)
