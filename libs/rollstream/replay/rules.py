"""Item rules: which runs of rows become items. A writer's rule sees only flags, so it works for every row layout.

NStep(2)     rows   0  1  2  3F 4  5       (F: FINAL, the end of an episode)
             items  [0  1  2]              a window of n steps is n + 1 rows: the last gives the bootstrap
                       [1  2  3F]
                          [2  3F]          shorter at the end of an episode
                                [4  5 ..   completes with the next rollout
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.spaces import Flag

__all__ = ["EachRow", "ItemRule", "ItemRuns", "NStep"]

Ints = npt.NDArray[np.int64]
NO_BOUNDARY = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRuns:
    """Items over open rows.

    Attributes:
        env, start, length: of each item [K]; `start` counts within its environment's open rows.
        keep: per environment [N], the first open row that a later item may start at; rows before it are done with.
    """

    env: Ints
    start: Ints
    length: Ints
    keep: Ints


class ItemRule(Protocol):
    """Cuts open rows into items."""

    def items(self, flags: npt.NDArray[np.uint8], offsets: Ints, *, closing: bool) -> ItemRuns:
        """Items that are complete now.

        Args:
            flags: of the open rows [M], environment after environment.
            offsets: int64 [N+1]; open rows of environment e are `offsets[e]..offsets[e+1]`.
            closing: no more rows will come, so windows end with what is there.
        """
        ...


@dataclass(frozen=True, slots=True)
class NStep:
    """An item starts at every row but FINAL ones and spans `steps` steps, fewer at the end of an episode."""

    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ConfigError(f"NStep: steps must be >= 1, got {self.steps}")

    def items(self, flags: npt.NDArray[np.uint8], offsets: Ints, *, closing: bool) -> ItemRuns:
        lengths = np.diff(offsets)
        env = np.repeat(np.arange(len(lengths)), lengths)
        end = offsets[1:][env]
        row = np.arange(len(flags), dtype=np.int64)
        boundary = (flags & Flag.FINAL) != 0
        if len(row):
            # An episode that was cut without a final row: what came before the next FIRST has no successor.
            boundary[:-1] |= ((flags[1:] & Flag.FIRST) != 0) & (row[1:] < end[:-1])
        following = np.minimum.accumulate(np.where(boundary, row, NO_BOUNDARY)[::-1])[::-1]
        following = np.where(following < end, following, NO_BOUNDARY)
        last = np.minimum(row + self.steps, following)
        complete = last < end
        if closing:
            last = np.minimum(last, end - 1)
            complete = last > row
        open_rows = np.bincount(env[~complete & ~boundary], minlength=len(lengths))
        chosen = np.flatnonzero(complete & ~boundary)
        return ItemRuns(
            env=env[chosen],
            start=chosen - offsets[:-1][env[chosen]],
            length=last[chosen] - chosen + 1,
            keep=lengths if closing else lengths - open_rows,
        )


@dataclass(frozen=True, slots=True)
class EachRow:
    """Every row but FINAL ones is an item of its own: for rows that are complete in themselves (bandits, logged transitions)."""

    def items(self, flags: npt.NDArray[np.uint8], offsets: Ints, *, closing: bool) -> ItemRuns:
        lengths = np.diff(offsets)
        chosen = np.flatnonzero((flags & (Flag.FINAL | Flag.PAD)) == 0)
        env = np.repeat(np.arange(len(lengths)), lengths)[chosen]
        return ItemRuns(env=env, start=chosen - offsets[:-1][env], length=np.ones(len(chosen), np.int64), keep=lengths)
