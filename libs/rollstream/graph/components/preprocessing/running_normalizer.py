"""Numbers in units of their own standard deviation, from statistics that are gathered while training.

The statistics are state of the component, so they are published, saved and exported with the weights: acting, evaluation and
training see the same numbers. `observe` adds a batch of rows by the formula of Chan, Golub & LeVeque (1979, "Updating formulae and
a pairwise algorithm for computing sample variances", equations 2.1), which joins two sets of data from their counts, means and variances
alone. So `merge` of the statistics of N actors gives those of one that saw all. (In a run, the learner observes the rows of all actors.)

Accuracy in float32: mean and variance are moved by differences from themselves, never as sums of squares, and what a move of the mean
loses by rounding is added to the next one (Kahan 1965), so a mean of a thousand deviations is as good as one of 0. The count is exact to
2^24 = 16.8 million rows; at 1e8 it is rounded to a multiple of 8, so observe many rows at a time: single ones would not be counted any
more, and the mean would become a moving average over as many rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.components.fit import require_shape
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["RunningNormalizer", "Statistics", "merge"]

SMALLEST = 1e-12
"""Divides instead of a count of 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Of some rows: how many (sum of weights), and mean and variance of each of their numbers."""

    count: float
    mean: npt.NDArray[Any]
    variance: npt.NDArray[Any]


def merge(parts: Sequence[Statistics]) -> Statistics:
    """Statistics of all rows together, in float64; the parts must have no row in common."""
    count = sum(part.count for part in parts)
    shares = [part.count / count if count else 1.0 / len(parts) for part in parts]
    mean = sum(share * part.mean.astype(np.float64) for share, part in zip(shares, parts, strict=True))
    variance = sum(share * (part.variance + (part.mean - mean) ** 2) for share, part in zip(shares, parts, strict=True))
    return Statistics(count=count, mean=np.asarray(mean), variance=np.asarray(variance))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningNormalizer:
    """(x - mean) / sqrt(variance + epsilon), clipped to [-limit, limit]; before the first row, x itself (clipped)."""

    epsilon: float = 1e-8
    limit: float = 10.0

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, ...] -> float [B, ...]."""
        ops = scope.ops
        shape = tuple(x.shape[1:])
        mean, variance = scope.state("mean", shape), scope.state("variance", shape, initial=1.0)
        return ops.clip((ops.to_float(x) - mean) / ops.sqrt(variance + self.epsilon), -self.limit, self.limit)

    @api
    def observe(self, scope: Scope, x: Array, weight: Array) -> None:
        """Add rows x [B, ...] to the statistics; each counts `weight` [B], 0 leaves it out."""
        require_shape(scope, weight, ("B",), where="RunningNormalizer.observe", argument="weight")
        ops = scope.ops
        shape = tuple(x.shape[1:])
        count, mean, variance = scope.state("count", ()), scope.state("mean", shape), scope.state("variance", shape, initial=1.0)
        weight = ops.to_float(weight)
        seen = ops.sum(weight)
        share = ops.reshape(weight, (x.shape[0],) + (1,) * len(shape)) / ops.maximum(seen, ops.zeros_like(seen) + SMALLEST)
        shift = ops.to_float(x) - mean  # from the mean so far: small numbers
        mean_shift = ops.sum(share * shift, axis=0)
        centred = shift - mean_shift
        total = count + seen
        new = seen / ops.maximum(total, ops.zeros_like(total) + SMALLEST)
        old = 1.0 - new
        scope.set_state("count", total)
        move = new * mean_shift + scope.state("mean_rest", shape)
        moved = mean + move
        scope.set_state("mean", moved)
        scope.set_state("mean_rest", move - (moved - mean))
        spread = ops.sum(share * centred * centred, axis=0)
        # of no rows at all, everything stays as it was: new is 0
        scope.set_state("variance", old * variance + new * spread + new * old * mean_shift * mean_shift)
