"""UPGO: returns that follow a trajectory for as long as it goes better than expected."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops
from rollstream.graph.returns.lambda_return import lambda_return
from rollstream.graph.returns.later import later

__all__ = ["upgo_return"]


def upgo_return(  # noqa: PLR0917 - the series of one formula
    ops: Ops, reward_t: Array, discount_t: Array, value_t: Array, next_value_t: Array, continues_t: Array
) -> Array:
    """Vinyals et al. 2019 (Nature 575), Methods, "upgoing policy update", with a discount.

        G_t = reward_t + discount_t (G_(t+1), if reward_(t+1) + discount_(t+1) next_value_(t+1) >= value_(t+1), else next_value_t)

    So it is the lambda-return whose lambda is 1 before a step that went at least as well as expected, and 0 otherwise. Where
    `continues_t` is 0, row t+1 belongs to another episode. `discount_t` is 0 where the episode terminated.

    Shapes: all [T, ...] -> the same.
    """
    went_well_t = ops.to_float(reward_t + discount_t * next_value_t >= value_t)
    return lambda_return(ops, reward_t, discount_t, next_value_t, continues_t, lambda_=later(ops, went_well_t))
