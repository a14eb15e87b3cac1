"""Of a distribution for each action, that of one action."""

from __future__ import annotations

import numpy as np

from rollstream.graph.ops import Array, Ops

__all__ = ["chosen"]


def chosen(ops: Ops, x: Array, index: Array) -> Array:
    """x [B, A, K], index int64 [B] -> [B, K]. By a sum over one-hot actions: A is small, and it needs no gather along the middle.

    Numbers of other actions are multiplied by 0, so they must be finite.
    """
    one_hot = ops.to_float(ops.constant(np.arange(x.shape[1], dtype=np.int64)) == ops.reshape(index, (x.shape[0], 1)))
    return ops.sum(x * ops.reshape(one_hot, (x.shape[0], x.shape[1], 1)), axis=1)
