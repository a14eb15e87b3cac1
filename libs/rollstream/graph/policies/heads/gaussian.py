"""The head of a Box leaf: a Gaussian, plain where the Box has no bounds, else squashed by tanh or clipped, then scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from rollstream.errors import SpaceError
from rollstream.graph.components.dense import Dense
from rollstream.graph.distributions import gaussian, squashed_gaussian
from rollstream.graph.initializers import Constant
from rollstream.graph.inputs import Input
from rollstream.graph.ops import Array
from rollstream.graph.policies.heads.bounds import Bounds, bounded
from rollstream.graph.policies.heads.head import Drawn, Judged
from rollstream.graph.scope import Scope
from rollstream.spaces import Column, Leaf

__all__ = ["BoxBounds", "GaussianHead"]

BoxBounds: TypeAlias = Literal["clip", "squash"]
"""How samples are kept inside the bounds of a Box."""

LOG_STD_RANGE = (-20.0, 2.0)
"""Of the logarithm of the standard deviation: beyond it float32 has nothing to say (Haarnoja et al. 2018, appendix)."""


@dataclass(frozen=True)
class GaussianHead:
    """Samples are drawn in [-1, 1] (up to tails) and scaled to the bounds inside the graph. Log-probabilities are those of what
    was drawn before scaling: densities over the real line (clip) or over (-1, 1) (squash), whatever the bounds are.

    Attributes:
        bounds: `clip` cuts samples at the bounds and judges them as drawn: entropy is exact; `squash` takes their tanh: no
            weight piles up at the bounds, and gradients flow through, but entropy is estimated from one sample.
        state_dependent_std: a layer gives the standard deviation; else it is a parameter, the same in every state, 1 at first.
    """

    leaf: Leaf
    _: KW_ONLY
    bounds: BoxBounds = "clip"
    state_dependent_std: bool = False

    def __post_init__(self) -> None:
        if self._unbounded and np.dtype(self.leaf.dtype).kind != "f":
            raise SpaceError(f"{self.leaf.name}: an integer Box action needs bounds; give them, e.g. in a wrapper")
        if not self._unbounded:
            Bounds(self.leaf)

    @property
    def noise(self) -> Input:
        return Input(name=f"noise.{self.leaf.name}", shape=(self.leaf.size,), role="noise", noise="normal")

    @property
    def action_column(self) -> Input:
        name, dtype = (self.leaf.name, self.leaf.dtype) if self._unbounded else (self._latent, "<f4")
        return Input(name=name, dtype=dtype, shape=self.leaf.shape)

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        return () if self._unbounded else (Column(name=self._latent, dtype="<f4", shape=self.leaf.shape),)

    def act(self, scope: Scope, x: Array, noise: Array, mask: Array | None) -> Drawn:
        mean, log_std = self._moments(scope, x)
        u = gaussian.sample(scope.ops, mean, log_std, noise)
        return Drawn(columns=self._columns(scope, u), log_prob=self._log_prob(scope, mean, log_std, u))

    def greedy(self, scope: Scope, x: Array, mask: Array | None) -> Mapping[str, Array]:
        return self._columns(scope, self._mean.output(scope.child("mean"), x))

    def evaluate(self, scope: Scope, x: Array, action: Array, mask: Array | None) -> Judged:
        ops, (mean, log_std) = scope.ops, self._moments(scope, x)
        u = ops.to_float(ops.reshape(action, mean.shape))
        log_prob = self._log_prob(scope, mean, log_std, u)
        return Judged(log_prob=log_prob, entropy=-log_prob if self._squashed else gaussian.entropy(ops, log_std))

    def features(self, scope: Scope, action: Array) -> Array:
        return scope.ops.tanh(scope.ops.to_float(scope.ops.reshape(action, (action.shape[0], self.leaf.size))))

    def _columns(self, scope: Scope, u: Array) -> Mapping[str, Array]:
        ops = scope.ops
        shaped = ops.reshape(u, (u.shape[0], *self.leaf.shape))
        if self._unbounded:
            return {self.leaf.name: shaped}
        unit = squashed_gaussian.mode(ops, u) if self._squashed else ops.clip(u, -1.0, 1.0)
        return {self.leaf.name: self._scale.to_environment(ops, unit), self._latent: shaped}

    def _log_prob(self, scope: Scope, mean: Array, log_std: Array, u: Array) -> Array:
        distribution = squashed_gaussian if self._squashed else gaussian
        return distribution.log_prob(scope.ops, mean, log_std, u)

    def _moments(self, scope: Scope, x: Array) -> tuple[Array, Array]:
        """Mean and logarithm of the standard deviation, [B, F]."""
        ops, mean = scope.ops, self._mean.output(scope.child("mean"), x)
        if self.state_dependent_std:
            log_std = self._log_std.output(scope.child("log_std"), x)
        else:
            log_std = scope.parameter("log_std", (self.leaf.size,), Constant()) + ops.zeros_like(mean)
        return mean, ops.clip(log_std, *LOG_STD_RANGE)

    @cached_property
    def _unbounded(self) -> bool:
        return not bounded(self.leaf)

    @property
    def _squashed(self) -> bool:
        return self.bounds == "squash" and not self._unbounded

    @property
    def _latent(self) -> str:
        return f"latent.{self.leaf.name}"

    @cached_property
    def _scale(self) -> Bounds:
        return Bounds(self.leaf)

    @cached_property
    def _mean(self) -> Dense:
        return Dense(features=self.leaf.size, gain=0.01)

    @cached_property
    def _log_std(self) -> Dense:
        return Dense(features=self.leaf.size, gain=0.01)
