"""The head of a Discrete leaf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from rollstream.graph.components.dense import Dense
from rollstream.graph.components.features import Features
from rollstream.graph.discrete import choices, index_to_value, value_to_index
from rollstream.graph.distributions import categorical
from rollstream.graph.inputs import Input, columns_of
from rollstream.graph.ops import Array
from rollstream.graph.policies.heads.head import Drawn, Judged
from rollstream.graph.scope import Scope
from rollstream.spaces import Column, Leaf

__all__ = ["CategoricalHead"]


@dataclass(frozen=True)
class CategoricalHead:
    """One dense layer gives the logits."""

    leaf: Leaf

    extra_columns: ClassVar[tuple[Column, ...]] = ()

    @property
    def noise(self) -> Input:
        return Input(name=f"noise.{self.leaf.name}", role="noise")

    @property
    def action_column(self) -> Input:
        return columns_of((self.leaf,))[0]

    def act(self, scope: Scope, x: Array, noise: Array, mask: Array | None) -> Drawn:
        log_probs = self._log_probs(scope, x, mask)
        choice = categorical.sample(scope.ops, log_probs, noise)
        columns = {self.leaf.name: index_to_value(self.leaf, choice)}
        return Drawn(columns=columns, log_prob=categorical.log_prob(scope.ops, log_probs, choice))

    def greedy(self, scope: Scope, x: Array, mask: Array | None) -> Mapping[str, Array]:
        return {self.leaf.name: index_to_value(self.leaf, categorical.mode(scope.ops, self._logits(scope, x, mask)))}

    def evaluate(self, scope: Scope, x: Array, action: Array, mask: Array | None) -> Judged:
        ops, log_probs = scope.ops, self._log_probs(scope, x, mask)
        return Judged(
            log_prob=categorical.log_prob(ops, log_probs, value_to_index(ops, self.leaf, action)),
            entropy=categorical.entropy(ops, log_probs),
        )

    def features(self, scope: Scope, action: Array) -> Array:
        return self._features.output(scope, {self.leaf.name: action})

    def _log_probs(self, scope: Scope, x: Array, mask: Array | None) -> Array:
        return scope.ops.log_softmax(self._logits(scope, x, mask))

    def _logits(self, scope: Scope, x: Array, mask: Array | None) -> Array:
        logits = self._dense.output(scope, x)
        return logits if mask is None else categorical.masked(scope.ops, logits, mask)

    @cached_property
    def _dense(self) -> Dense:
        return Dense(features=choices(self.leaf), gain=0.01)

    @cached_property
    def _features(self) -> Features:
        return Features((self.leaf,))
