"""How policies see: preprocessing (when there is any), then torsos; the same in acting, learning and evaluation."""

from __future__ import annotations

from collections.abc import Mapping

from rollstream.graph.components.preprocessing import Preprocessing
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope
from rollstream.spaces import Leaf

__all__ = ["observe", "observe_apis", "observe_arguments", "seen", "seen_leaves"]

PREPROCESSING = "preprocessing"


def seen_leaves(preprocessing: Preprocessing | None, observation: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
    """Leaves that torsos are made for."""
    return observation if preprocessing is None else preprocessing.output_leaves


def seen(preprocessing: Preprocessing | None, scope: Scope, observation: Mapping[str, Array]) -> Mapping[str, Array]:
    """The observation [B, ...] as torsos get it."""
    if preprocessing is None:
        return observation
    return preprocessing.output(scope.child(PREPROCESSING), observation)


def observe_apis(preprocessing: Preprocessing | None) -> tuple[str, ...]:
    """`observe`, where there are statistics that it would move."""
    return ("observe",) if preprocessing is not None and preprocessing.has_state else ()


def observe_arguments(observation: tuple[Leaf, ...]) -> Arguments:
    """What the API `observe` of a policy takes."""
    return {"observation": columns_of(observation), "weight": Input(name="weight", low=0.5, high=1.0)}


def observe(preprocessing: Preprocessing | None, scope: Scope, observation: Mapping[str, Array], weight: Array) -> None:
    """Take rows of weight [B] into the statistics."""
    assert preprocessing is not None, "observe is an API only with preprocessing that keeps statistics"
    preprocessing.observe(scope.child(PREPROCESSING), observation, weight)
