"""What recurrent layers have in common: their result, and how a step becomes a sequence.

x [B, T, F]  --all rows at once-->  seen [T, B, G]  --scan-->  h at every step, state after the last
                                     first [T, B]: state * 0 where an episode begins
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rollstream.graph.ops import Array, Ops

__all__ = ["Remembered", "unrolled"]


class Remembered(NamedTuple):
    """What a recurrent layer says, and what it remembers: `output` [B, H] (or [B, T, H]), `state` [B, S]."""

    output: Array
    state: Array


def unrolled(
    ops: Ops,
    step: Callable[[tuple[Array, ...], Array], tuple[tuple[Array, ...], Array]],
    *,
    seen: Callable[[Array], Array],
    x: Array,
    first: Array,
    state: Array,
) -> Remembered:
    """`step` over T steps.

    Args:
        step: from (state [B, S],) and what is seen of the input [B, G] to the same state and the output [B, H].
        seen: what a step sees of rows of input, [B * T, F] -> [B * T, G]; one multiplication for all.
        x, first, state: [B, T, F], [B, T] (1 where an episode begins), [B, S].
    """
    rows, steps, width = x.shape
    flat = seen(ops.reshape(x, (rows * steps, width)))
    over_time = ops.transpose(ops.reshape(flat, (rows, steps, flat.shape[-1])), (1, 0, 2))
    kept = ops.transpose(1.0 - ops.to_float(first), (1, 0))[:, :, None]
    carry, y = ops.scan(lambda carry, at_t, keep: step((carry[0] * keep,), at_t), (state,), [over_time, kept])
    return Remembered(output=ops.transpose(y, (1, 0, 2)), state=carry[0])
