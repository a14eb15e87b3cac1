"""Steps of N environments on their way into rows: one array, written in place, given away as one rollout.

    environment 0   [ row | row | row | row |     ]      in a line as long as all have as many rows;
    environment 1   [ row | row |E row|     |     ]      by index where they differ (E: a final observation)
    environment 2   [ row | row | row | par |     ]      par: a partial step, not counted until it is whole

No Python loop over environments: a step costs a few NumPy assignments a column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch
from rollstream.replay.step_layout import StepLayout, entries_of
from rollstream.spaces import Flag, RowSpec

__all__ = ["StepBuffer", "Steps"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
FIRST = int(Flag.FIRST)
FINAL_TERMINATED = int(Flag.FINAL | Flag.TERMINATED)
FINAL_TRUNCATED = int(Flag.FINAL | Flag.TRUNCATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Rows [R], environment after environment by `offsets` [N+1]; views of the buffer where possible."""

    rows: npt.NDArray[np.void]
    offsets: Ints


class StepBuffer:
    """Up to `capacity` rows of each environment.

    Args:
        finite: as of `StepLayout`.

    Attributes:
        total: [N], rows of each environment so far, those given away included.
        episode_begin: [N], the row that its newest episode begins with.
        begins: [N], whether its next row begins an episode.
        padding: [N], how many of its newest rows are padding.
        has_partial: [N], whether a partial step waits for the rest of its columns.
    """

    def __init__(self, rows: RowSpec, *, environments: int, capacity: int, finite: frozenset[str] = frozenset()) -> None:
        self.layout = StepLayout(rows, finite=finite)
        self.capacity = capacity
        self._environments = environments
        self._rows = np.zeros((environments, capacity), rows.dtype)
        self._fields = {name: self._rows[name] for name in rows.dtype.names or ()}
        self._everybody = np.arange(environments)
        self._count = np.zeros(environments, np.int64)
        self._level: int | None = 0  # the count of all environments, while it is one
        self._partial: dict[str, Bools] = {}
        self.has_partial = np.zeros(environments, np.bool_)
        self.total = np.zeros(environments, np.int64)
        self.episode_begin = np.zeros(environments, np.int64)
        self.begins = np.ones(environments, np.bool_)
        self.padding = np.zeros(environments, np.int64)
        self._flags = np.full(environments, FIRST, np.uint8)

    @property
    def rows(self) -> int:
        """Rows that wait to be given away."""
        return int(self._count.sum()) if self._level is None else self._level * self._environments

    def episode_rows(self) -> Ints:
        """Rows of each environment's running episode so far [N]."""
        return np.where(self.begins, 0, self.total - self.episode_begin)

    def has_room(self, rows: int) -> bool:
        """Whether every environment can take that many rows."""
        most = int(self._count.max()) if self._level is None else self._level
        return most + rows <= self.capacity

    def add(self, step: Mapping[str, Any], *, which: Ints | None, version: int) -> None:
        """One whole row for each environment, or for those of `which`; completes partial ones."""
        columns = self._read(step, which)
        if self._partial:
            self._complete(columns, self._everybody if which is None else which)
        else:
            missing = self.layout.missing(columns)
            if missing:
                raise SchemaMismatch(f"the step lacks the columns {', '.join(missing)}; give them, or say partial=True")
        absent = () if len(columns) == len(self._fields) - 2 else self.layout.absent(columns)
        if which is None and self._level is not None and not self._partial:
            level = self._level
            for name, column in columns.items():
                self._fields[name][:, level] = column
            for name in absent:
                self._fields[name][:, level] = 0
            self._fields["flags"][:, level] = self._flags
            self._fields["version"][:, level] = version
            self._level = level + 1
            self._count += 1
            self.total += 1
            if self._flags.any():
                self._begun(self._everybody)
            return
        env = self._everybody if which is None else which
        at = self._count[env]
        for name, column in columns.items():
            self._fields[name][env, at] = column
        for name in absent:
            self._clear(name, env, at)
        self._fields["flags"][env, at] = self._flags[env]
        self._fields["version"][env, at] = version
        self._advance(env)

    def add_partial(self, step: Mapping[str, Any], *, which: Ints | None) -> None:
        """Some columns of the next row; it counts once `add` or `finish` completes it."""
        columns = self._read(step, which)
        env = self._everybody if which is None else which
        self._require_new(columns, env)
        at = self._count[env]
        for name, column in columns.items():
            self._fields[name][env, at] = column
            self._partial.setdefault(name, np.zeros(self._environments, np.bool_))[env] = True
        self.has_partial[env] = True

    def finish(self, env: Ints, *, terminated: Bools, final: Mapping[str, Any] | None, version: int) -> None:
        """End the episodes of environments `env` [K].

        A row of the final observation is written where one is known (`final` [K, ...], or a partial step), and where the episode
        terminated, for then its value does not matter. A truncated one without it is cut: its last row is all there is.
        """
        known = self.has_partial[env] if final is None else np.ones(len(env), np.bool_)
        columns = {} if final is None else self.layout.read(final, count=len(env))
        if final is not None:
            self._require_new(columns, env)
        running = ~self.begins[env] | self.has_partial[env]
        ends = running & (known | terminated)
        chosen = env[ends]
        at = self._count[chosen]
        for name, field in self._fields.items():
            if name in columns:
                field[chosen, at] = columns[name][ends]
            else:
                self._clear(name, chosen, at)
        first = self._flags[chosen]
        self._fields["flags"][chosen, at] = np.where(terminated[ends], FINAL_TERMINATED, FINAL_TRUNCATED) | first
        self._fields["version"][chosen, at] = version
        self._advance(chosen)
        over = env[running]
        self.begins[over] = True
        self._flags[over] = FIRST

    def take(self) -> Steps:
        """The rows so far. The buffer may be written again after `clear`."""
        if self._level is not None:
            level, environments = self._level, self._environments
            rows = self._rows[:, :level].reshape(-1)
            return Steps(rows=rows, offsets=np.arange(environments + 1, dtype=np.int64) * level)
        offsets = np.zeros(self._environments + 1, np.int64)
        np.cumsum(self._count, out=offsets[1:])
        return Steps(rows=self._rows[np.arange(self.capacity) < self._count[:, None]], offsets=offsets)

    def clear(self) -> None:
        """Forget the rows; partial steps stay."""
        if self._partial:
            env = np.flatnonzero(self.has_partial)
            self._rows[env, 0] = self._rows[env, np.minimum(self._count[env], self.capacity - 1)]
        self._count[:] = 0
        self._level = 0

    def skip(self, rows: Ints) -> None:
        """Count rows [N] that were put between: padding."""
        self.total += rows
        self.padding += rows

    # --- columns ---------------------------------------------------------------------------------------------------------

    def _read(self, step: Mapping[str, Any], which: Ints | None) -> dict[str, Array]:
        if which is None:
            return self.layout.read(step, count=self._environments)
        return self.layout.read(entries_of(step, which, environments=self._environments), count=len(which))

    def _require_new(self, columns: Mapping[str, Array], env: Ints) -> None:
        for name, filled in self._partial.items():
            if name in columns and filled[env].any():
                first = int(env[filled[env]][0])
                raise SchemaMismatch(
                    f"column {name} of environment {first} was given twice for one step; complete the step first"
                )

    def _complete(self, columns: Mapping[str, Array], env: Ints) -> None:
        self._require_new(columns, env)
        for name in self.layout.missing(columns):
            filled = self._partial.get(name)
            lacking = env if filled is None else env[~filled[env]]
            if len(lacking):
                raise SchemaMismatch(
                    f"the step lacks the column {name} of environment {lacking[0]}, also among its partial columns"
                )

    def _clear(self, name: str, env: Ints, at: Ints) -> None:
        """Zeros, where no partial step has given the column."""
        filled = self._partial.get(name)
        if filled is not None:
            empty = ~filled[env]
            env, at = env[empty], at[empty]
        self._fields[name][env, at] = 0

    def _advance(self, env: Ints) -> None:
        self._count[env] += 1
        self.total[env] += 1
        level = int(self._count[0]) if self._environments else 0
        self._level = level if bool((self._count == level).all()) else None
        self._begun(env)
        if self._partial:
            for filled in self._partial.values():
                filled[env] = False
            self.has_partial[env] = False
            if not self.has_partial.any():
                self._partial.clear()

    def _begun(self, env: Ints) -> None:
        new = env[self.begins[env]]
        self.episode_begin[new] = self.total[new] - 1
        self.padding[new] = 0
        self.begins[env] = False
        self._flags[env] = 0
