"""Action masks: an observation leaf called `action_mask` says which choices are allowed now; it is no feature.

    observation.action_mask [B, A]  -->  action.move [B, 4], action.item [B, A - 4]      (in the order of the action leaves)

1 allows, 0 forbids. A row that forbids everything has no answer: policies treat it as if it allowed everything, so that nothing
becomes NaN, and `unanswerable` finds it where data comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import SpaceError
from rollstream.graph.components.features import is_action_mask
from rollstream.graph.ops import Array
from rollstream.spaces import Leaf

__all__ = ["Masks", "unanswerable"]


def unanswerable(mask: npt.NDArray[Any], actions: Sequence[Leaf]) -> npt.NDArray[np.bool_]:
    """Rows of a mask [B, choices] that forbid every choice of some decision, [B]."""
    begins = np.cumsum([0, *(count for leaf in actions for count in leaf.counts)])[:-1]
    answers = np.logical_or.reduceat(mask > 0.5, begins, axis=-1)
    found: npt.NDArray[np.bool_] = np.asarray(np.logical_not(answers).any(axis=1))
    return found


@dataclass(frozen=True)
class Masks:
    """The mask of the discrete leaves of an action space; none when the observation has no such leaf.

    Raises:
        SpaceError: there are several masks, or it has another number of entries than there are choices.
    """

    observation: tuple[Leaf, ...]
    actions: tuple[Leaf, ...]

    def __post_init__(self) -> None:
        found = [leaf.name for leaf in self.observation if is_action_mask(leaf)]
        if len(found) > 1:
            raise SpaceError(f"{found[1]}: there is a second action mask, {found[0]}; put them into one")
        if self.leaf is not None and self.leaf.size != self._total:
            raise SpaceError(
                f"{self.leaf.name}: an action mask needs one entry for each choice, {self._total} in all for "
                f"{', '.join(leaf.name for leaf in self.actions)}, got {self.leaf.size}"
            )

    @cached_property
    def leaf(self) -> Leaf | None:
        """The observation leaf that holds the mask."""
        return next((leaf for leaf in self.observation if is_action_mask(leaf)), None)

    def of(self, observation: Mapping[str, Array]) -> dict[str, Array]:
        """By action leaf, the mask [B, choices] of an observation [B, ...]; empty without a mask."""
        if self.leaf is None:
            return {}
        mask = observation[self.leaf.name]
        return {name: mask[:, begin : begin + width] for name, (begin, width) in self._spans.items()}

    @property
    def _total(self) -> int:
        return sum(sum(leaf.counts) for leaf in self.actions)

    @cached_property
    def _spans(self) -> dict[str, tuple[int, int]]:
        """Where the entries of each leaf begin, and how many there are."""
        spans, begin = {}, 0
        for leaf in self.actions:
            if leaf.counts:
                spans[leaf.name] = (begin, sum(leaf.counts))
                begin += sum(leaf.counts)
        return spans
