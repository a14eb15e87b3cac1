"""The categorical distribution over A choices, given by its log-probabilities [B, A]."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops

__all__ = ["entropy", "sample"]


def sample(ops: Ops, log_prob: Array, noise: Array) -> Array:
    """Choice by inversion: the number of cumulated probabilities that lie at or below `noise`, uniform in [0, 1).

    Noise is an input, so every backend chooses the same. The last cumulated probability is left out: it is 1 up to rounding,
    and so no choice beyond A-1 can come out.

    Shapes: log_prob [B, A], noise [B] -> int64 [B].
    """
    cumulated = ops.cumsum(ops.exp(log_prob))
    return ops.sum(cumulated[:, :-1] <= noise[:, None], axis=-1)


def entropy(ops: Ops, log_prob: Array) -> Array:
    """- sum over a of p(a) log p(a), in nats.

    Shapes: log_prob [B, A] -> [B].
    """
    return -ops.sum(ops.exp(log_prob) * log_prob, axis=-1)
