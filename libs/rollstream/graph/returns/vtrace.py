"""V-trace: values and advantages of the policy that learns, from steps of another that acted."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.graph.ops import Array, Ops
from rollstream.graph.returns.later import later

__all__ = ["Vtrace", "vtrace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vtrace:
    """Attributes:
    target: what values should be, v_t, [T, ...].
    advantage: what the policy gradient is weighted by, [T, ...].
    """

    target: Array
    advantage: Array


def vtrace(  # noqa: PLR0917 - the series of one formula
    ops: Ops,
    reward_t: Array,
    discount_t: Array,
    value_t: Array,
    next_value_t: Array,
    ratio_t: Array,
    continues_t: Array,
    *,
    lambda_: float = 1.0,
    rho_clip: float = 1.0,
    c_clip: float = 1.0,
    advantage_rho_clip: float = 1.0,
) -> Vtrace:
    """Espeholt et al. 2018 (arXiv 1802.01561), equation 1 and section 4.2.

        delta_t = min(rho_clip, ratio_t) (reward_t + discount_t next_value_t - value_t)
        target_t = value_t + delta_t + discount_t c_t (target_(t+1) - value_(t+1)),   c_t = lambda min(c_clip, ratio_t)
        advantage_t = min(advantage_rho_clip, ratio_t) (reward_t + discount_t target_(t+1) - value_t)

    With ratios of 1 targets are lambda-returns. Where `continues_t` is 0, row t+1 belongs to another episode, and `next_value_t`
    stands for its target; the last row's has no effect. `discount_t` is 0 where the episode terminated.

    Args:
        ratio_t: probability of the action under the policy that learns over that under the one that acted.
        rho_clip: which policy's values are learned: infinite that of the learning policy, near 0 that of the acting one.
        c_clip: how far errors of later steps reach back; it changes the speed, not the outcome.
        advantage_rho_clip: the same for the policy gradient.

    Shapes: all [T, ...] -> the same.
    """
    delta_t = ops.clip(ratio_t, 0.0, rho_clip) * (reward_t + discount_t * next_value_t - value_t)
    trace_t = discount_t * continues_t * ops.clip(ratio_t, 0.0, c_clip) * lambda_
    initial = ops.zeros_like(delta_t[0])
    error_t = ops.scan_reverse(lambda after, delta, trace: delta + trace * after, initial, (delta_t, trace_t))
    next_target_t = next_value_t + continues_t * later(ops, error_t)
    advantage_t = ops.clip(ratio_t, 0.0, advantage_rho_clip) * (reward_t + discount_t * next_target_t - value_t)
    return Vtrace(target=value_t + error_t, advantage=advantage_t)
