"""K independent categorical distributions, given by their log-probabilities [B, K, A]; one of fewer choices has forbidden ones."""

from __future__ import annotations

from rollstream.graph.distributions import categorical
from rollstream.graph.ops import Array, Ops

__all__ = ["entropy", "kl", "log_prob", "mode", "sample"]


def sample(ops: Ops, log_probs: Array, noise: Array) -> Array:
    """Choices by inversion, see `categorical.sample`.

    Shapes: log_probs [B, K, A], noise [B, K] -> int64 [B, K].
    """
    rows, several, choices = log_probs.shape
    flat = ops.reshape(log_probs, (rows * several, choices))
    return ops.reshape(categorical.sample(ops, flat, ops.reshape(noise, (rows * several,))), (rows, several))


def mode(ops: Ops, log_probs: Array) -> Array:
    """The most probable choices, int64 [B, K]."""
    return ops.argmax(log_probs)


def log_prob(ops: Ops, log_probs: Array, choice: Array) -> Array:
    """Of all K choices together. Shapes: [B, K, A], int64 [B, K] -> [B]."""
    return ops.sum(ops.pick(log_probs, choice), axis=-1)


def entropy(ops: Ops, log_probs: Array) -> Array:
    """In nats: the sum of the K entropies. Shapes: [B, K, A] -> [B]."""
    return ops.sum(categorical.entropy(ops, log_probs), axis=-1)


def kl(ops: Ops, log_probs: Array, other: Array) -> Array:
    """Divergence to `other`: the sum of the K divergences. Shapes: [B, K, A] twice -> [B]."""
    return ops.sum(categorical.kl(ops, log_probs, other), axis=-1)
