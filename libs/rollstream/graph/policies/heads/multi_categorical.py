"""The head of a MultiDiscrete leaf of any shape and any starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from rollstream.graph.components.dense import Dense
from rollstream.graph.components.features import Features
from rollstream.graph.discrete import value_to_index
from rollstream.graph.distributions import categorical, multi_categorical
from rollstream.graph.inputs import Input
from rollstream.graph.ops import Array
from rollstream.graph.policies.heads.head import Drawn, Judged
from rollstream.graph.scope import Scope
from rollstream.spaces import Column, Leaf

__all__ = ["MultiCategoricalHead"]


@dataclass(frozen=True)
class MultiCategoricalHead:
    """One dense layer gives all logits, side by side; then each of the K entries has A places, of which some may be forbidden."""

    leaf: Leaf

    extra_columns: ClassVar[tuple[Column, ...]] = ()

    @property
    def noise(self) -> Input:
        return Input(name=f"noise.{self.leaf.name}", shape=(self.leaf.size,), role="noise")

    @property
    def action_column(self) -> Input:
        low, high = max(self.leaf.starts), min(s + n for s, n in zip(self.leaf.starts, self.leaf.counts, strict=True))
        return Input(name=self.leaf.name, dtype=self.leaf.dtype, shape=self.leaf.shape, low=low, high=max(high, low + 1))

    def act(self, scope: Scope, x: Array, noise: Array, mask: Array | None) -> Drawn:
        ops, log_probs = scope.ops, self._log_probs(scope, x, mask)
        choice = multi_categorical.sample(ops, log_probs, noise)
        return Drawn(columns=self._columns(scope, choice), log_prob=multi_categorical.log_prob(ops, log_probs, choice))

    def greedy(self, scope: Scope, x: Array, mask: Array | None) -> Mapping[str, Array]:
        return self._columns(scope, multi_categorical.mode(scope.ops, self._log_probs(scope, x, mask)))

    def evaluate(self, scope: Scope, x: Array, action: Array, mask: Array | None) -> Judged:
        ops, log_probs = scope.ops, self._log_probs(scope, x, mask)
        choice = value_to_index(ops, self.leaf, ops.reshape(action, (action.shape[0], self.leaf.size)))
        return Judged(
            log_prob=multi_categorical.log_prob(ops, log_probs, choice), entropy=multi_categorical.entropy(ops, log_probs)
        )

    def features(self, scope: Scope, action: Array) -> Array:
        return self._features.output(scope, {self.leaf.name: action})

    def _columns(self, scope: Scope, choice: Array) -> Mapping[str, Array]:
        ops = scope.ops
        return {self.leaf.name: ops.reshape(choice + ops.constant(self._starts), (choice.shape[0], *self.leaf.shape))}

    def _log_probs(self, scope: Scope, x: Array, mask: Array | None) -> Array:
        """[B, K, A]."""
        ops, logits = scope.ops, self._dense.output(scope, x)
        logits = self._places(scope, logits, absent=categorical.FORBIDDEN)
        if mask is not None:
            logits = categorical.masked(ops, logits, self._places(scope, ops.to_float(mask), absent=0.0))
        return ops.log_softmax(logits)

    def _places(self, scope: Scope, x: Array, *, absent: float) -> Array:
        """[B, sum of counts] -> [B, K, A]; `absent` where an entry has fewer than A choices."""
        ops, shape = scope.ops, (x.shape[0], len(self.leaf.counts), max(self.leaf.counts))
        if len(set(self.leaf.counts)) > 1:
            x = ops.take(ops.concatenate([x, x[:, :1] * 0.0 + absent]), self._place_of)
        return ops.reshape(x, shape)

    @cached_property
    def _place_of(self) -> npt.NDArray[np.int64]:
        """For each of the K x A places, which logit stands there; the one behind the last stands for none."""
        total, most = sum(self.leaf.counts), max(self.leaf.counts)
        places = np.full((len(self.leaf.counts), most), total, np.int64)
        begin = 0
        for entry, count in enumerate(self.leaf.counts):
            places[entry, :count] = np.arange(begin, begin + count)
            begin += count
        return places.ravel()

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.asarray(self.leaf.starts, np.int64)

    @cached_property
    def _dense(self) -> Dense:
        return Dense(features=sum(self.leaf.counts), gain=0.01)

    @cached_property
    def _features(self) -> Features:
        return Features((self.leaf,))
