"""Choices as zeros and a one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rollstream.graph.components.features import Features
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf

__all__ = ["OneHot"]


@dataclass(frozen=True)
class OneHot:
    """A Discrete or MultiDiscrete leaf, counted from its start; as `Features` does it, but in the middle of a chain."""

    leaf: Leaf

    @cached_property
    def _features(self) -> Features:
        return Features((self.leaf,))

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, ...] integers -> float [B, F]."""
        return self._features.output(scope, {self.leaf.name: x})
