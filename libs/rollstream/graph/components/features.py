"""From an observation of any supported space to the float features that a dense layer reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rollstream.errors import SpaceError
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf

__all__ = ["Features", "is_action_mask"]

MASK = "action_mask"


def is_action_mask(leaf: Leaf) -> bool:
    """Whether a leaf says which actions are allowed (its name ends in `action_mask`): it is no feature."""
    return leaf.name.rpartition(".")[2] == MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choices:
    """For each one-hot feature: which number of the value it looks at, and which choice it stands for (start included)."""

    number: npt.NDArray[np.int64]
    choice: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Features:
    """Box and MultiBinary flattened, Discrete and MultiDiscrete one-hot (counted from their start); leaves side by side.

    No scaling is guessed: an image's 0 to 255 stay so. An `action_mask` is no feature.
    """

    observation: tuple[Leaf, ...]

    def __post_init__(self) -> None:
        if not self._seen:
            names = ", ".join(leaf.name for leaf in self.observation) or "nothing"
            raise SpaceError(f"Features.output, argument observation: needs a leaf besides action_mask, got {names}")

    @property
    def width(self) -> int:
        """Features of one observation."""
        return sum(leaf.features for leaf in self._seen)

    @api
    def output(self, scope: Scope, observation: Mapping[str, Array]) -> Array:
        """Columns [B, ...] by leaf name -> [B, F]."""
        parts = [self._leaf(scope, leaf, observation[leaf.name]) for leaf in self._seen]
        return parts[0] if len(parts) == 1 else scope.ops.concatenate(parts)

    def _leaf(self, scope: Scope, leaf: Leaf, x: Array) -> Array:
        ops = scope.ops
        if len(x.shape) != 2:
            x = ops.reshape(x, (x.shape[0], leaf.size))
        if not leaf.counts:
            return ops.to_float(x)
        choices = self._choices[leaf.name]
        looked_at = x if leaf.size == 1 else ops.take(x, choices.number)
        return ops.to_float(looked_at == ops.constant(choices.choice))

    @cached_property
    def _seen(self) -> tuple[Leaf, ...]:
        return tuple(leaf for leaf in self.observation if not is_action_mask(leaf))

    @cached_property
    def _choices(self) -> dict[str, _Choices]:
        return {leaf.name: _one_hot(leaf) for leaf in self.observation if leaf.counts}


def _one_hot(leaf: Leaf) -> _Choices:
    spans = list(zip(leaf.starts, leaf.counts, strict=True))
    return _Choices(
        number=np.concatenate([np.full(count, number, np.int64) for number, (_, count) in enumerate(spans)]),
        choice=np.concatenate([np.arange(start, start + count, dtype=np.int64) for start, count in spans]),
    )
