"""One head for each leaf of the action space; together they draw, take the best, and judge: log-probabilities and entropies add up.

features [B, F] --> head of action.x --> x            log_prob = log p(x) + log p(y | x)
          |    (x's features, if autoregressive)
          +-------> head of action.y --> y
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from rollstream.graph.inputs import Input
from rollstream.graph.ops import Array
from rollstream.graph.policies.heads import (
    BernoulliHead,
    BoxBounds,
    CategoricalHead,
    Drawn,
    GaussianHead,
    Head,
    Judged,
    MultiCategoricalHead,
)
from rollstream.graph.scope import Scope
from rollstream.spaces import Column, Leaf

__all__ = ["ActionHeads"]


@dataclass(frozen=True)
class ActionHeads:
    """See the module.

    Attributes:
        bounds, state_dependent_std: as of `GaussianHead`.
        autoregressive: each head also reads what the heads before it chose.
    """

    actions: tuple[Leaf, ...]
    _: KW_ONLY
    bounds: BoxBounds = "clip"
    state_dependent_std: bool = False
    autoregressive: bool = False

    @property
    def noise(self) -> tuple[Input, ...]:
        """What `act` draws with: one input for each leaf."""
        return tuple(head.noise for head in self._heads)

    @property
    def action_columns(self) -> tuple[Input, ...]:
        """What `evaluate` reads."""
        return tuple(head.action_column for head in self._heads)

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """What rows must hold besides the leaves."""
        return tuple(column for head in self._heads for column in head.extra_columns)

    def act(self, scope: Scope, x: Array, noise: Mapping[str, Array], masks: Mapping[str, Array]) -> Drawn:
        """x [B, F], noise by input name, masks by leaf name -> columns of all leaves, and their joint log-probability [B]."""
        columns: dict[str, Array] = {}
        log_prob: Array | None = None
        for head in self._heads:
            own = self._place(scope, head)
            drawn = head.act(own, self._seen(scope, head, x, columns), noise[head.noise.name], masks.get(head.leaf.name))
            columns.update(drawn.columns)
            log_prob = drawn.log_prob if log_prob is None else log_prob + drawn.log_prob
        return Drawn(columns=columns, log_prob=log_prob)

    def greedy(self, scope: Scope, x: Array, masks: Mapping[str, Array]) -> dict[str, Array]:
        """The most probable action of each leaf (given those before it)."""
        columns: dict[str, Array] = {}
        for head in self._heads:
            seen = self._seen(scope, head, x, columns)
            columns.update(head.greedy(self._place(scope, head), seen, masks.get(head.leaf.name)))
        return columns

    def evaluate(self, scope: Scope, x: Array, action: Mapping[str, Array], masks: Mapping[str, Array]) -> Judged:
        """Of actions by the names of `action_columns`; sums over the leaves, [B]."""
        total: Judged | None = None
        for head in self._heads:
            seen = self._seen(scope, head, x, action)
            own = self._place(scope, head)
            one = head.evaluate(own, seen, action[head.action_column.name], masks.get(head.leaf.name))
            total = one if total is None else _sum(total, one)
        assert total is not None, "an action space has at least one leaf"
        return total

    def _seen(self, scope: Scope, head: Head, x: Array, chosen: Mapping[str, Array]) -> Array:
        """Features for a head: with those of the actions before it when autoregressive."""
        before = self._heads[: self._heads.index(head)] if self.autoregressive else ()
        if not before:
            return x
        known = [other.features(self._place(scope, other), chosen[other.action_column.name]) for other in before]
        return scope.ops.concatenate([x, *known])

    def _place(self, scope: Scope, head: Head) -> Scope:
        """Where the parameters of a head are; with one leaf there is nothing to tell apart."""
        return scope if len(self._heads) == 1 else scope.child(head.leaf.name)

    @cached_property
    def _heads(self) -> tuple[Head, ...]:
        return tuple(self._head(leaf) for leaf in self.actions)

    def _head(self, leaf: Leaf) -> Head:
        if leaf.kind == "discrete":
            return CategoricalHead(leaf)
        if leaf.kind == "multi_discrete":
            return MultiCategoricalHead(leaf)
        if leaf.kind == "multi_binary":
            return BernoulliHead(leaf)
        return GaussianHead(leaf, bounds=self.bounds, state_dependent_std=self.state_dependent_std)


def _sum(one: Judged, other: Judged) -> Judged:
    return Judged(log_prob=one.log_prob + other.log_prob, entropy=one.entropy + other.entropy)
