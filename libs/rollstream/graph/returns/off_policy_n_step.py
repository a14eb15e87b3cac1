"""n-step returns from steps of another policy."""

from __future__ import annotations

from rollstream.errors import ConfigError
from rollstream.graph.ops import Array, Ops

__all__ = ["off_policy_n_step_return"]


def off_policy_n_step_return(  # noqa: PLR0917 - the series of one formula
    ops: Ops,
    reward_t: Array,
    discount_t: Array,
    value_t: Array,
    next_value_t: Array,
    ratio_t: Array,
    continues_t: Array,
    *,
    steps: int,
) -> Array:
    """Per-decision importance sampling with control variates (Sutton & Barto 2018, equation 7.13).

        G_(t:h) = ratio_t (reward_t + discount_t G_(t+1:h)) + (1 - ratio_t) value_t,   G_(h:h) = next_value_(h-1),   h = t + steps

    With ratios of 1 it is the n-step return. Near the end, where fewer than `steps` remain, it takes those there are. Where
    `continues_t` is 0, row t+1 belongs to another episode, and `next_value_t` stands for its return. `discount_t` is 0 where
    the episode terminated.

    Args:
        ratio_t: probability of the action under the policy that learns over that under the one that acted.

    Shapes: all [T, ...] -> the same.
    """
    if steps < 1:
        raise ConfigError(f"an off-policy n-step return needs steps >= 1, got {steps}")
    # G of window k from the windows k - 1 one row later; a window of 0 steps is worth the value of where it starts
    following = next_value_t
    found = reward_t
    for _ in range(min(steps, reward_t.shape[0])):
        found = ratio_t * (reward_t + discount_t * following) + (1.0 - ratio_t) * value_t
        after = ops.concatenate([found[1:], next_value_t[-1:]], axis=0)
        following = next_value_t + continues_t * (after - next_value_t)
    return found
