"""The categorical distribution over A choices, given by its log-probabilities [B, A]."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops

__all__ = ["FORBIDDEN", "entropy", "kl", "log_prob", "masked", "mode", "sample"]

FORBIDDEN = -1e9
"""Logit of a choice that a mask forbids: its probability is exactly 0 in float32, and 0 log 0 stays 0 without a NaN."""


def masked(ops: Ops, logits: Array, mask: Array) -> Array:
    """Logits where choices of mask 0 are forbidden. A row that forbids all keeps all: it has no answer, but stays finite.

    Shapes: logits, mask [B, A] -> [B, A].
    """
    allowed = mask > 0.5
    any_allowed = ops.max(ops.to_float(allowed), keepdims=True)
    return ops.where(ops.to_float(allowed) >= any_allowed, logits, ops.zeros_like(logits) + FORBIDDEN)


def sample(ops: Ops, log_probs: Array, noise: Array) -> Array:
    """Choice by inversion: the number of cumulated probabilities that lie at or below `noise`, uniform in [0, 1).

    Noise is an input, so every backend chooses the same. It is stretched to the last cumulated probability, which is 1 up to
    rounding: so no choice beyond A-1 can come out, and none of probability 0, be it the last one.

    Shapes: log_probs [B, A], noise [B] -> int64 [B].
    """
    cumulated = ops.cumsum(ops.exp(log_probs))
    return ops.sum(cumulated[:, :-1] <= noise[:, None] * cumulated[:, -1:], axis=-1)


def mode(ops: Ops, log_probs: Array) -> Array:
    """The most probable choice, int64 [B]."""
    return ops.argmax(log_probs)


def log_prob(ops: Ops, log_probs: Array, choice: Array) -> Array:
    """[B, A], int64 [B] -> [B]."""
    return ops.pick(log_probs, choice)


def entropy(ops: Ops, log_probs: Array) -> Array:
    """- sum over a of p(a) log p(a), in nats.

    Shapes: log_probs [B, A] -> [B].
    """
    return -ops.sum(ops.exp(log_probs) * log_probs, axis=-1)


def kl(ops: Ops, log_probs: Array, other: Array) -> Array:
    """Kullback-Leibler divergence to `other`: sum over a of p(a) (log p(a) - log q(a)).

    Shapes: [B, A], [B, A] -> [B].
    """
    return ops.sum(ops.exp(log_probs) * (log_probs - other), axis=-1)
