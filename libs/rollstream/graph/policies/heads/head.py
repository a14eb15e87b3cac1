"""What a head is: it draws, takes the best, and judges actions of one leaf, always in the environment's own values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from rollstream.graph.inputs import Input
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope
from rollstream.spaces import Column, Leaf

__all__ = ["Drawn", "Head", "Judged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Actions by column name, [B, ...]: the leaf's, and the latent one where there is one; and their log-probability [B]."""

    columns: Mapping[str, Array]
    log_prob: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Log-probability of given actions, and the entropy of the distribution that they are judged by; both [B]."""

    log_prob: Array
    entropy: Array


class Head(Protocol):
    """The head of one leaf. `x` are features [B, F]; `mask` [B, choices] is 0 for those that are forbidden now; heads without choices
    ignore it."""

    @property
    def leaf(self) -> Leaf: ...

    @property
    def noise(self) -> Input:
        """What `act` draws with."""
        ...

    @property
    def action_column(self) -> Input:
        """What `evaluate` reads: the leaf itself, or the sample before squashing or clipping."""
        ...

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """What rows must hold besides the leaf, so that `evaluate` can judge."""
        ...

    def act(self, scope: Scope, x: Array, noise: Array, mask: Array | None) -> Drawn: ...

    def greedy(self, scope: Scope, x: Array, mask: Array | None) -> Mapping[str, Array]:
        """The most probable action, columns as in `act`."""
        ...

    def evaluate(self, scope: Scope, x: Array, action: Array, mask: Array | None) -> Judged: ...

    def features(self, scope: Scope, action: Array) -> Array:
        """The action column as features [B, G], for heads that come later and want to know."""
        ...
