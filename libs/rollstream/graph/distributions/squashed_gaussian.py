"""tanh of a Gaussian: a density over (-1, 1) to the F (Haarnoja et al. 2018, arXiv 1801.01290, appendix C).

Everything is a function of the sample before tanh, u: it cannot be had back from tanh(u) in float32 once |u| passes 8 or so.
"""

from __future__ import annotations

import math

from rollstream.graph.distributions import gaussian
from rollstream.graph.ops import Array, Ops

__all__ = ["entropy", "log_prob", "log_slope", "mode"]


def log_slope(ops: Ops, u: Array) -> Array:
    """log(1 - tanh(u)²), the logarithm of tanh's slope, as 2 (log 2 - u - softplus(-2 u)): exact, and finite for every u. [B, F]."""
    return 2.0 * (math.log(2.0) - u - ops.softplus(-2.0 * u))


def log_prob(ops: Ops, mean: Array, log_std: Array, u: Array) -> Array:
    """Logarithm of the density at tanh(u), over (-1, 1) to the F. Shapes: all [B, F] -> [B]."""
    return gaussian.log_prob(ops, mean, log_std, u) - ops.sum(log_slope(ops, u), axis=-1)


def entropy(ops: Ops, mean: Array, log_std: Array, u: Array) -> Array:
    """Estimate from one sample: -log_prob(u). There is no closed form; its mean over samples is the entropy. [B, F] -> [B]."""
    return -log_prob(ops, mean, log_std, u)


def mode(ops: Ops, mean: Array) -> Array:
    """tanh(mean): the median; the density may peak elsewhere, but this is what everyone takes. [B, F]."""
    return ops.tanh(mean)
