"""Notices observations that never change: what a vector environment gives that forgets to write its buffers.

Training on zeros looks like training, so a column that stays the same in every copy for many steps is told, once. It is a warning, for some
columns are constant on purpose (a goal, a mask).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ConstantColumns"]

_LOG = logging.getLogger("rollstream.envs")
AFTER_STEPS = 1_000
"""Vector steps in a row without a change: more than the longest time in which a sane observation stands still in every copy."""


class ConstantColumns:
    """Looks at rollouts; costs one comparison of two steps for a column that changes."""

    def __init__(self, columns: Sequence[str], *, name: str, after_steps: int = AFTER_STEPS) -> None:
        self._name = name
        self._after_steps = after_steps
        self._same_steps = dict.fromkeys(columns, 0)

    def see(self, columns: Mapping[str, npt.NDArray[Any]], *, done: npt.NDArray[np.bool_]) -> None:
        """Columns [T + 1, N, ...] of a rollout; `done` [T, N]: the step ended an episode, so a change after it is no sign of life
        (nor after the step that follows, which may be a reset)."""
        steps = len(done)
        ignored = done.copy()
        ignored[1:] |= done[:-1]
        for column in tuple(self._same_steps):
            values = columns[column][: steps + 1]
            if _changes(values[:2], ignored[:1]) or _changes(values, ignored):
                self._same_steps[column] = 0
                continue
            self._same_steps[column] += steps
            if self._same_steps[column] >= self._after_steps:
                _LOG.warning(
                    "environment %r: %s has not changed in any copy for %d steps in a row; if it should, see whether the vector "
                    "environment writes it (told once)",
                    self._name,
                    column,
                    self._same_steps[column],
                )
                del self._same_steps[column]


def _changes(values: npt.NDArray[Any], ignored: npt.NDArray[np.bool_]) -> bool:
    """Whether any copy changes from one step to the next, where that is not ignored."""
    differs = (values[1:] != values[:-1]).reshape(*ignored.shape, -1).any(axis=-1)
    return bool((differs & ~ignored).any())
