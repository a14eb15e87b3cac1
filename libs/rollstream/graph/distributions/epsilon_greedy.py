"""The choice of highest value, and with probability epsilon any allowed one, all equally likely."""

from __future__ import annotations

from rollstream.graph.distributions import categorical
from rollstream.graph.ops import Array, Ops

__all__ = ["sample"]


def sample(ops: Ops, values: Array, allowed_log_probs: Array, noise: Array, epsilon: Array) -> Array:
    """Choices, int64 [B].

    Shapes: values [B, A]; allowed_log_probs [B, A], those of the choices taken when exploring; noise [B, 2] uniform in [0, 1):
    whether to explore, and where to; epsilon [B], one for each environment.
    """
    random = categorical.sample(ops, allowed_log_probs, noise[:, 1])
    return ops.where(noise[:, 0] < epsilon, random, ops.argmax(values))
