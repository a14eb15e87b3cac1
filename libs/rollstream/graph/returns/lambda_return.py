"""Lambda-returns, and the TD(lambda) errors that they make."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops

__all__ = ["lambda_return", "td_lambda_error"]


def lambda_return(
    ops: Ops, reward_t: Array, discount_t: Array, next_value_t: Array, continues_t: Array, *, lambda_: Array | float
) -> Array:
    """Exponentially weighted mean of all n-step returns (Sutton & Barto 2018, equations 12.2 and 12.18).

        G_t = reward_t + discount_t ((1 - lambda) next_value_t + lambda G_(t+1))

    Where `continues_t` is 0, row t+1 belongs to another episode, and lambda counts as 0: a truncated episode bootstraps from
    `next_value_t`. The last row's has no effect. `discount_t` is 0 where the episode terminated.

    Args:
        lambda_: 0 takes one step, 1 all there are; a number, or one for each step [T, ...].

    Shapes: all [T, ...] -> the same.
    """
    trace_t = continues_t * lambda_
    step_t = reward_t + discount_t * (1.0 - trace_t) * next_value_t
    return ops.scan_reverse(lambda after, step, trace: step + trace * after, next_value_t[-1], (step_t, discount_t * trace_t))


def td_lambda_error(  # noqa: PLR0917 - the series of one formula
    ops: Ops, reward_t: Array, discount_t: Array, value_t: Array, next_value_t: Array, continues_t: Array, *, lambda_: float
) -> Array:
    """What TD(lambda) moves `value_t` by: the lambda-return less the value (Sutton & Barto 2018, equation 12.4).

    It is the advantage of GAE where `next_value_t` and `value_(t+1)` are of one network; here next values may be a target network's.

    Shapes: all [T, ...] -> the same.
    """
    return lambda_return(ops, reward_t, discount_t, next_value_t, continues_t, lambda_=lambda_) - value_t
