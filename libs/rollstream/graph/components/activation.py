"""The function after a layer, by name: the one place that knows what `tanh`, `relu`, `elu`, `silu` and `sigmoid` mean."""

from __future__ import annotations

from rollstream.graph.ops import Activation, Array, Ops

__all__ = ["activate"]


def activate(ops: Ops, name: Activation | None, x: Array) -> Array:
    """`name` of each entry of x, any shape; None: x itself.

    elu(x) = x above 0, else exp(x) - 1 (Clevert et al. 2016, arXiv 1511.07289, equation 16); silu(x) = x * sigmoid(x)
    (Elfwing et al. 2018, arXiv 1702.03118, equation 3).
    """
    if name is None:
        return x
    if name == "tanh":
        return ops.tanh(x)
    if name == "relu":
        return ops.relu(x)
    if name == "sigmoid":
        return ops.sigmoid(x)
    if name == "silu":
        return x * ops.sigmoid(x)
    return ops.relu(x) + ops.expm1(x - ops.relu(x))  # elu: one of the two terms is 0
