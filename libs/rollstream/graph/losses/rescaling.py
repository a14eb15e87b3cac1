"""Values on a compressed scale, so that one network can learn returns of very different sizes."""

from __future__ import annotations

from rollstream.graph.ops import Array, Ops

__all__ = ["compressed", "expanded"]

SLOPE = 1e-3
"""Of h far away, so that it has an inverse."""


def compressed(ops: Ops, x: Array) -> Array:
    """h(x) = sign(x) (sqrt(|x| + 1) - 1) + e x with e = 0.001 (Pohlen et al. 2018, arXiv 1805.11593; used by R2D2 and MuZero).

    Shapes: x [...] -> [...].
    """
    size = ops.abs(x)
    # size / (sqrt(size + 1) + 1) is sqrt(size + 1) - 1 without the difference of almost equal numbers
    return ops.sign(x) * (size / (ops.sqrt(size + 1.0) + 1.0)) + SLOPE * x


def expanded(ops: Ops, x: Array) -> Array:
    """The inverse of `compressed` (the same paper, proposition A.2):

        sign(x) (((sqrt(1 + 4 e (|x| + 1 + e)) - 1) / 2e)² - 1)

    Shapes: x [...] -> [...].
    """
    # the same without differences of almost equal numbers: with s the inner root, which is 1 + 2 e at x = 0, and r the term that is
    # squared, r - 1 = 2 |x| (1 - 2 e / (s + 1 + 2 e)) / (s + 1) and r² - 1 = (r - 1) (r - 1 + 2)
    size = ops.abs(x)
    inner = ops.sqrt(1.0 + 4.0 * SLOPE * (size + (1.0 + SLOPE)))
    above = 2.0 * size * (1.0 - 2.0 * SLOPE / (inner + (1.0 + 2.0 * SLOPE))) / (inner + 1.0)
    return ops.sign(x) * (above * (above + 2.0))
