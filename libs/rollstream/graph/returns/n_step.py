"""n-step returns."""

from __future__ import annotations

from rollstream.errors import ConfigError
from rollstream.graph.ops import Array, Ops

__all__ = ["n_step_return"]


def n_step_return(ops: Ops, reward_t: Array, discount_t: Array, next_value_t: Array, *, steps: int) -> Array:
    """Discounted reward of `steps` steps, then the value of where they lead (Sutton & Barto 2018, equation 7.1).

        G_t = reward_t + discount_t (reward_(t+1) + discount_(t+1) ( ... + discount_(t+n-1) next_value_(t+n-1)))

    Near the end, where fewer than `steps` remain, it takes those there are. `discount_t` is 0 where an episode ended,
    so nothing beyond counts.

    Shapes: reward_t, discount_t, next_value_t [T, ...] -> [T, ...].
    """
    if steps < 1:
        raise ConfigError(f"an n-step return needs steps >= 1, got {steps}")
    length = reward_t.shape[0]
    ahead = min(steps, length) - 1
    last = next_value_t[length - 1 :]
    target = ops.concatenate([next_value_t[ahead:], *[last] * ahead], axis=0)
    for step in range(ahead, -1, -1):
        reward = ops.concatenate([reward_t[step:], ops.zeros_like(reward_t[:step])], axis=0)
        discount = ops.concatenate([discount_t[step:], ops.ones_like(discount_t[:step])], axis=0)
        target = reward + discount * target
    return target
