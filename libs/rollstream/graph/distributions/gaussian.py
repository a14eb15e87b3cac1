"""The Gaussian with independent entries, given by mean and logarithm of the standard deviation, both [B, F]."""

from __future__ import annotations

import math

from rollstream.graph.ops import Array, Ops

__all__ = ["entropy", "kl", "log_prob", "sample"]

HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)


def sample(ops: Ops, mean: Array, log_std: Array, noise: Array) -> Array:
    """mean + std * noise, with standard normal noise: a gradient flows through. Shapes: all [B, F]."""
    return mean + ops.exp(log_std) * noise


def log_prob(ops: Ops, mean: Array, log_std: Array, x: Array) -> Array:
    """Logarithm of the density at `x`, of all entries together. Shapes: all [B, F] -> [B]."""
    distance = (x - mean) * ops.exp(-log_std)
    return -ops.sum(0.5 * distance * distance + log_std + HALF_LOG_TAU, axis=-1)


def entropy(ops: Ops, log_std: Array) -> Array:
    """In nats: the sum of log std + log(2 pi e) / 2. Shapes: [B, F] -> [B]."""
    return ops.sum(log_std + (HALF_LOG_TAU + 0.5), axis=-1)


def kl(ops: Ops, mean: Array, log_std: Array, other_mean: Array, other_log_std: Array) -> Array:
    """Divergence to the other. Shapes: all [B, F] -> [B]."""
    distance = (mean - other_mean) * ops.exp(-other_log_std)
    ratio = ops.exp(2.0 * (log_std - other_log_std))
    return ops.sum(other_log_std - log_std + 0.5 * (ratio + distance * distance - 1.0), axis=-1)
