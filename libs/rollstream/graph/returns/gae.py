"""Generalized advantage estimation."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops

__all__ = ["gae"]


def gae(  # noqa: PLR0917 - the five series of one formula
    ops: Ops,
    reward_t: Array,
    discount_t: Array,
    value_t: Array,
    next_value_t: Array,
    continues_t: Array,
    *,
    gae_lambda: float,
) -> Array:
    """Exponentially weighted sum of TD errors (Schulman et al. 2016, arXiv 1506.02438, equations 11, 12 and 16).

        delta_t = reward_t + discount_t next_value_t - value_t
        advantage_t = delta_t + discount_t lambda continues_t advantage_(t+1)

    `discount_t` is gamma, or 0 where the episode terminated (nothing comes after). `continues_t` is 1 where row t+1
    is the next step of the same episode, else 0: a truncated episode bootstraps from `next_value_t`, yet takes
    nothing from the row after it. The last row's `continues_t` has no effect.

    Shapes: all [T, B], or [T] for the rows of several environments one after the other -> the same.
    """
    delta_t = reward_t + discount_t * next_value_t - value_t
    trace_t = discount_t * gae_lambda * continues_t
    initial = ops.zeros_like(delta_t[0])
    return ops.scan_reverse(lambda after, delta, trace: delta + trace * after, initial, (delta_t, trace_t))
