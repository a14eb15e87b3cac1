"""The head of a MultiBinary leaf of any shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from rollstream.graph.components.dense import Dense
from rollstream.graph.distributions import bernoulli
from rollstream.graph.inputs import Input, columns_of
from rollstream.graph.ops import Array
from rollstream.graph.policies.heads.head import Drawn, Judged
from rollstream.graph.scope import Scope
from rollstream.spaces import Column, Leaf

__all__ = ["BernoulliHead"]


@dataclass(frozen=True)
class BernoulliHead:
    """One dense layer gives a logit for each bit."""

    leaf: Leaf

    extra_columns: ClassVar[tuple[Column, ...]] = ()

    @property
    def noise(self) -> Input:
        return Input(name=f"noise.{self.leaf.name}", shape=(self.leaf.size,), role="noise")

    @property
    def action_column(self) -> Input:
        return columns_of((self.leaf,))[0]

    def act(self, scope: Scope, x: Array, noise: Array, mask: Array | None) -> Drawn:
        ops, logits = scope.ops, self._dense.output(scope, x)
        bits = bernoulli.sample(ops, logits, noise)
        return Drawn(columns=self._columns(scope, bits), log_prob=bernoulli.log_prob(ops, logits, bits))

    def greedy(self, scope: Scope, x: Array, mask: Array | None) -> Mapping[str, Array]:
        return self._columns(scope, bernoulli.mode(scope.ops, self._dense.output(scope, x)))

    def evaluate(self, scope: Scope, x: Array, action: Array, mask: Array | None) -> Judged:
        ops, logits = scope.ops, self._dense.output(scope, x)
        return Judged(log_prob=bernoulli.log_prob(ops, logits, self._flat(scope, action)), entropy=bernoulli.entropy(ops, logits))

    def features(self, scope: Scope, action: Array) -> Array:
        return scope.ops.to_float(self._flat(scope, action))

    def _columns(self, scope: Scope, bits: Array) -> Mapping[str, Array]:
        return {self.leaf.name: scope.ops.reshape(bits, (bits.shape[0], *self.leaf.shape))}

    def _flat(self, scope: Scope, action: Array) -> Array:
        return scope.ops.reshape(action, (action.shape[0], self.leaf.size))

    @cached_property
    def _dense(self) -> Dense:
        return Dense(features=self.leaf.size, gain=0.01)
