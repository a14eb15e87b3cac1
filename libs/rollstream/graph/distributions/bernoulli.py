"""K independent bits, given by their logits [B, K]: a bit is 1 with probability sigmoid(logit)."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops

__all__ = ["entropy", "kl", "log_prob", "mode", "sample"]


def sample(ops: Ops, logits: Array, noise: Array) -> Array:
    """1 where `noise`, uniform in [0, 1), lies below the probability. Shapes: [B, K], [B, K] -> int64 [B, K]."""
    return ops.to_int(noise < ops.sigmoid(logits))


def mode(ops: Ops, logits: Array) -> Array:
    """The most probable bits, int64 [B, K]."""
    return ops.to_int(logits > 0.0)


def log_prob(ops: Ops, logits: Array, bits: Array) -> Array:
    """Of all K bits together: the sum of bit * logit - log(1 + exp(logit)). Shapes: [B, K], [B, K] -> [B]."""
    return ops.sum(ops.to_float(bits) * logits - ops.softplus(logits), axis=-1)


def entropy(ops: Ops, logits: Array) -> Array:
    """In nats: the sum of log(1 + exp(logit)) - p * logit. Shapes: [B, K] -> [B]."""
    return ops.sum(ops.softplus(logits) - ops.sigmoid(logits) * logits, axis=-1)


def kl(ops: Ops, logits: Array, other: Array) -> Array:
    """Divergence to `other`. Shapes: [B, K], [B, K] -> [B]."""
    return ops.sum(ops.sigmoid(logits) * (logits - other) - ops.softplus(logits) + ops.softplus(other), axis=-1)
