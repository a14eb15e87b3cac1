"""How policies see: preprocessing (when there is any), then torsos; the same in acting, learning and evaluation."""

from __future__ import annotations

from collections.abc import Mapping

from rollstream.graph.components.preprocessing import Preprocessing
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope
from rollstream.spaces import Leaf

__all__ = ["PREPROCESSING", "seen", "seen_leaves"]

PREPROCESSING = "preprocessing"


def seen_leaves(preprocessing: Preprocessing | None, observation: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
    """Leaves that torsos are made for."""
    return observation if preprocessing is None else preprocessing.output_leaves


def seen(preprocessing: Preprocessing | None, scope: Scope, observation: Mapping[str, Array]) -> Mapping[str, Array]:
    """The observation [B, ...] as torsos get it."""
    if preprocessing is None:
        return observation
    return preprocessing.output(scope.child(PREPROCESSING), observation)
