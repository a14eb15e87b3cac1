"""Retrace: returns of action values from steps of any policy."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops
from rollstream.graph.returns.later import later

__all__ = ["retrace"]


def retrace(  # noqa: PLR0917 - the series of one formula
    ops: Ops,
    reward_t: Array,
    discount_t: Array,
    q_t: Array,
    next_expected_q_t: Array,
    ratio_t: Array,
    continues_t: Array,
    *,
    lambda_: float = 1.0,
) -> Array:
    """Munos et al. 2016 (arXiv 1606.02647), equation 4 with its trace, row 4 of table 1.

        G_t = reward_t + discount_t (next_expected_q_t + c_(t+1) (G_(t+1) - q_(t+1))),   c_t = lambda min(1, ratio_t)

    Where `continues_t` is 0, row t+1 belongs to another episode, and c_(t+1) counts as 0; the last row's has no effect.
    `discount_t` is 0 where the episode terminated.

    Args:
        q_t: value of the action that was taken.
        next_expected_q_t: mean of the action values of the next state under the policy that learns.
        ratio_t: probability of the action under that policy over that under the one that acted.

    Shapes: all [T, ...] -> the same.
    """
    delta_t = reward_t + discount_t * next_expected_q_t - q_t
    trace_t = discount_t * continues_t * later(ops, ops.clip(ratio_t, 0.0, 1.0)) * lambda_
    initial = ops.zeros_like(delta_t[0])
    return q_t + ops.scan_reverse(lambda after, delta, trace: delta + trace * after, initial, (delta_t, trace_t))
