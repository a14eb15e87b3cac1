"""Patterns: items that take some steps of each column, counted back from the newest step, whenever conditions hold.

    step            ...   5    6    7    8       (8: the newest)
    observation           x    x    x            step["observation"][-4:-1]
    action                          x            step["action"][-2]
    next_observation                     x       step["observation"][-1]

A pattern is an item rule: the item is the run of rows from the oldest step taken to the newest, stored once whatever takes it, and
`Pattern.view` says what a sample's columns are. The row that holds an episode's final observation counts as a step for patterns
that take only observations of the newest step; a pattern that takes its action or reward is not applied there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.replay.conditions import Condition
from rollstream.replay.item_priority import Priority, TdMix, columns_of, mixed, require_priority
from rollstream.replay.open_steps import ItemRuns, OpenSteps
from rollstream.replay.rules import require_history
from rollstream.replay.spec import TableSpec
from rollstream.replay.step_reference import StepSlice, flat_slices
from rollstream.replay.view import ColumnView
from rollstream.spaces import Flag, RowSpec

__all__ = ["Pattern", "PatternItems", "by_table", "pattern_items", "pattern_table"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
FINAL, PAD = int(Flag.FINAL), int(Flag.PAD)


@dataclass(frozen=True)
class Pattern:
    """An item rule by columns.

    Args:
        patterned: slices of `step` by name; mappings may be nested, names are then joined by dots.
        table: for which table it is, where patterns are given as a list.
        priority: of new items: a number, a `TdMix` (over the steps that the pattern takes of that column, else over all rows of the
            item), or None: the highest so far.
        conditions: all must hold of the newest step.
        final_columns: columns that hold something in the row of an episode's final observation; with those below them.
        history: rows before the oldest step taken, for columns that are stacked from several rows when they are read.

    >>> from rollstream.replay import condition, step
    >>> pattern = Pattern(
    ...     {"observation": step["observation"][-2], "action": step["action"][-2], "next_observation": step["observation"][-1]},
    ...     conditions=[condition.step_index % 2 == 1],
    ... )
    >>> pattern.rows_needed
    2
    """

    patterned: Mapping[str, Any]
    table: str = ""
    priority: Priority = None
    conditions: Sequence[Condition] = ()
    final_columns: tuple[str, ...] = ("observation",)
    history: int = 0

    def __post_init__(self) -> None:
        if not self.slices:
            raise ConfigError("a pattern takes at least one column, got none; e.g. {'action': step['action'][-1]}")
        for condition in self.conditions:
            if not isinstance(condition, Condition):
                raise ConfigError(f"pattern conditions are comparisons such as condition.step_index >= 3, got {condition!r}")
        require_priority(self.priority)
        require_history(self, self.history)

    @cached_property
    def slices(self) -> dict[str, StepSlice]:
        """What is taken, by dotted name."""
        return flat_slices(self.patterned)

    @cached_property
    def newest(self) -> int:
        """The newest step taken of any column: -1, or one before."""
        return max(max(part.places) for part in self.slices.values())

    @cached_property
    def rows_needed(self) -> int:
        """How many steps of the episode there must be, up to the newest."""
        return -min(min(part.places) for part in self.slices.values())

    @property
    def view(self) -> tuple[ColumnView, ...]:
        """What the table's samples are (`TableSpec.view`)."""
        return tuple(part.view(name, newest=self.newest) for name, part in self.slices.items())

    @property
    def columns(self) -> tuple[str, ...]:
        data = (condition.column for condition in self.conditions if condition.kind == "data")
        return (*data, *columns_of(self.priority))

    @cached_property
    def acts(self) -> bool:
        """Whether it takes something of the newest step that a final row does not hold."""
        return any(-1 in part.places and not self._is_final(part.column) for part in self.slices.values())

    @cached_property
    def at_end(self) -> bool:
        """Whether it is applied at the ends of episodes only."""
        ends = (one for one in self.conditions if one.kind == "is_end_episode")
        return any(bool(one.holds(np.array([1]))[0]) and not bool(one.holds(np.array([0]))[0]) for one in ends)

    def items(self, steps: OpenSteps) -> ItemRuns:
        episodes = steps.episodes
        state = None
        if self.at_end:
            row, of = self._ends(steps)
        else:
            made = (steps.flags[steps.fresh_rows] & (PAD | FINAL if self.acts else PAD)) == 0
            row, of = steps.fresh_rows[made], steps.fresh_of[made]
        applied = self._holds(steps, row, of)
        if not self.at_end and any(one.kind == "steps_since_applied" for one in self.conditions):
            applied, state = self._in_turn(steps, made, applied)
        row, of = row[applied], of[applied]
        env = episodes.env[of]
        first = row + 1 - self.rows_needed
        lead = None
        if self.history:
            lead = np.minimum(self.history, first - episodes.start[of])
            first = first - lead
        still = episodes.running
        needed = np.maximum(episodes.end[still] + 1 - self.rows_needed - self.history, episodes.start[still])
        return ItemRuns(
            env=env,
            start=first - steps.offsets[env],
            length=row + self.newest + 2 - first,
            lead=lead,
            keep=steps.keep_from(needed, of_episodes=still),
            priority=self._priorities(steps, row),
            state=state,
        )

    def _is_final(self, column: str) -> bool:
        return any(column == name or column.startswith(f"{name}.") for name in self.final_columns)

    def _ends(self, steps: OpenSteps) -> tuple[Ints, Ints]:
        """The last step of each episode that was found to be over, and the episode."""
        episodes = steps.episodes
        over = np.flatnonzero(episodes.over_now)
        row = episodes.end[over]
        if self.acts:
            row = row - ((steps.flags[row] & FINAL) != 0)
        there = row >= episodes.start[over]
        return row[there], over[there]

    def _holds(self, steps: OpenSteps, row: Ints, of: Ints) -> Bools:
        """Whether the conditions hold when each of these rows is the newest step; those on turns only at ends of episodes."""
        position = steps.position(row, of)
        holds: Bools = position >= self.rows_needed - 1
        for one in self.conditions:
            if one.kind == "data":
                known: npt.NDArray[Any] = steps.columns[one.column][row]
            elif one.kind == "is_end_episode":
                known = np.full(len(row), 1) if self.at_end else (steps.flags[row] & FINAL) != 0
            elif one.kind == "steps_since_applied":
                if not self.at_end:
                    continue
                known = position + 1
            else:
                known = position + (one.kind == "buffer_length")
            holds = holds & one.holds(known)
        return holds

    def _in_turn(self, steps: OpenSteps, made: Bools, holds: Bools) -> tuple[Bools, Ints]:
        """To which of the rows it is applied, when that depends on when it was applied before; and the state after them.

        Args:
            made: [F], whether it can be applied to a fresh row at all; of those that it can, `holds` tells the other conditions.
        """
        fresh = steps.fresh
        since = np.zeros(len(fresh), np.int64) if steps.state is None else steps.state.copy()
        possible = np.zeros(len(made), np.bool_)
        possible[made] = holds
        turns = [one for one in self.conditions if one.kind == "steps_since_applied"]
        position = steps.position(steps.fresh_rows, steps.fresh_of)
        begin = np.cumsum(fresh) - fresh
        for turn in range(int(fresh.max(initial=0))):
            env = np.flatnonzero(fresh > turn)
            at = begin[env] + turn
            env, at = env[made[at]], at[made[at]]
            since[env] = np.where(position[at] == 0, 0, since[env]) + 1
            hit = possible[at]
            for one in turns:
                hit = hit & one.holds(since[env])
            since[env[hit]] = 0
            possible[at] = hit
        return possible[made], since

    def _priorities(self, steps: OpenSteps, row: Ints) -> npt.NDArray[np.float32] | None:
        priority = self.priority
        if priority is None or not len(row):
            return None
        if not isinstance(priority, TdMix):
            return np.full(len(row), priority, np.float32)
        taken = [part.places for part in self.slices.values() if part.column == priority.column]
        places = np.array(taken[0] if taken else range(-self.rows_needed, self.newest + 1))
        errors = steps.columns[priority.column][row[:, None] + 1 + places].reshape(-1)
        lengths = np.full(len(row), len(places))
        return mixed(priority, errors, np.cumsum(lengths) - lengths, lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternItems:
    """Items [K] of a pattern over arrays: their columns, by the pattern's names, and where they were taken.

    Attributes:
        newest: [K], index of each item's newest step in the arrays.
        columns: [K, ...], or [K, steps, ...] of slices.
        priority: [K]; None where the pattern has none.
    """

    newest: Ints
    columns: Mapping[str, npt.NDArray[Any]]
    priority: npt.NDArray[np.float32] | None


def pattern_items(pattern: Pattern, columns: Mapping[str, npt.NDArray[Any]], offsets: Ints) -> PatternItems:
    """Apply a pattern to recorded episodes, without a table.

    Args:
        columns: arrays [M, ...], by dotted name; `flags` as in rows, or none: then every row is an ordinary step.
        offsets: [E+1], rows of episode e are `offsets[e]..offsets[e+1]`.

    Raises:
        SchemaMismatch: a column that the pattern names is not there.
    """
    needed = {part.column for part in pattern.slices.values()} | set(pattern.columns)
    missing = sorted(needed - set(columns))
    if missing:
        raise SchemaMismatch(f"the pattern takes the columns {', '.join(missing)}, given are: {', '.join(sorted(columns))}")
    flags = columns.get("flags")
    lengths = np.diff(offsets)
    seen = {"flags": np.zeros(int(offsets[-1]), np.uint8) if flags is None else flags, **{n: columns[n] for n in pattern.columns}}
    steps = OpenSteps(
        columns=seen, offsets=np.asarray(offsets), fresh=lengths, before=np.zeros(len(lengths), np.int64), closing=True
    )
    runs = pattern.items(steps)
    newest = steps.offsets[runs.env] + runs.start + runs.length - 2 - pattern.newest
    taken = {}
    for name, part in pattern.slices.items():
        places = newest[:, None] + 1 + np.array(part.places)
        column = columns[part.column][places]
        taken[name] = column[:, 0] if part.index else column
    return PatternItems(newest=newest, columns=taken, priority=runs.priority)


def by_table(patterns: Sequence[Pattern]) -> dict[str, list[Pattern]]:
    """Patterns that say for which table they are, as writers take them.

    >>> from rollstream.replay import step
    >>> actions = Pattern({"action": step["action"][-1]}, table="actions")
    >>> list(by_table([actions]))
    ['actions']
    """
    tables: dict[str, list[Pattern]] = {}
    for pattern in patterns:
        if not pattern.table:
            raise ConfigError(f"pattern of {', '.join(pattern.slices)} does not say for which table it is; give it table=...")
        tables.setdefault(pattern.table, []).append(pattern)
    return tables


def pattern_table(pattern: Pattern, rows: RowSpec, *, name: str, max_items: int, **settings: Any) -> TableSpec:
    """The spec of a table for this pattern's items: its view, and all columns of `rows` that there are to take.

    >>> from rollstream.spaces import Column
    >>> from rollstream.replay import step
    >>> rows = RowSpec((Column(name="observation", dtype="<f4", shape=(4,)), Column(name="action", dtype="<i8")))
    >>> spec = pattern_table(Pattern({"action": step["action"][-1]}), rows, name="actions", max_items=100)
    >>> [(view.name, view.index) for view in spec.view]
    [('action', -1)]
    """
    return TableSpec(name=pattern.table or name, max_items=max_items, rows=rows, view=pattern.view, **settings)  # type: ignore[arg-type]
