"""Item rules: which runs of rows become items of a table.

    rows of an episode of five steps      0    1    2    3    4    5E     (5: the final observation)

    Transition()                          [----]
                                               [----]                     ... one item a step
    NStep(2)                              [---------]
                                               [---------]   ...   [----] shorter at the end
    Sequence(length=2, stride=2)          [---------]
                                                    [---------]
                                                              [----]      the tail
    Sequence(2, 2, burn_in=1)             [---------]
                                               ~~~~ [---------]           ~: lead, rows before the core
    Episode(max_length=100)               [------------------------]
    EachRow()                             []   []   []   []   []          rows complete in themselves; no FINAL row

A window of n steps is n + 1 rows: the last one gives the observation to bootstrap from. No item crosses the start or the end of
an episode. Every rule takes `history`: up to that many rows before the core, for columns that are stacked from several rows when
they are read; like burn-in they are the item's lead. Every rule takes `priority`: a number, or a `TdMix` of a column;
windows over steps also an `ActedError` of the values that the actor acted by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from rollstream.errors import ConfigError, TableError
from rollstream.replay.item_priority import ItemPriority, Priority, TdMix, columns_of, require_priority, with_priority
from rollstream.replay.open_steps import ENDS, ItemRuns, OpenSteps
from rollstream.replay.windows import Windows

__all__ = [
    "EachRow",
    "Episode",
    "ItemRule",
    "ItemRuns",
    "NStep",
    "OpenSteps",
    "Sequence",
    "TdMix",
    "Transition",
    "require_history",
]

LEAD_MAX = 65_535
"""Rows of lead that an item can have: what its place in the log holds."""
Overlong: TypeAlias = Literal["split", "error"]


class ItemRule(Protocol):
    """Cuts open rows into items. Pure: the same open rows give the same items."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the rule looks at, beside `flags`."""
        ...

    def items(self, steps: OpenSteps) -> ItemRuns:
        """The items that the fresh rows of `steps` complete."""
        ...


@dataclass(frozen=True, slots=True)
class NStep:
    """An item starts at every row but FINAL ones and spans `steps` steps, fewer at the end of an episode.

    Args:
        discount: kept for whoever reads the items; cutting does not need it.
        history: rows before the core, for stacked columns.
        priority: of new items; None: the highest so far.
    """

    steps: int
    discount: float | None = None
    history: int = 0
    priority: ItemPriority = None

    def __post_init__(self) -> None:
        _require(self, "steps", self.steps, least=1)
        require_history(self, self.history)
        if self.discount is not None and not 0.0 <= self.discount <= 1.0:
            raise ConfigError(f"NStep: discount must be between 0 and 1, got {self.discount}")
        require_priority(self.priority)

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.priority)

    def items(self, steps: OpenSteps) -> ItemRuns:
        windows = Windows(length=self.steps, stride=1, lead=self.history, tail="each")
        return with_priority(self.priority, steps, windows.cut(steps), bootstrap_rows=1)


def Transition(*, history: int = 0, priority: ItemPriority = None) -> NStep:  # noqa: N802 - it is one of the rules
    """One item a step, of two rows: `NStep(1)`."""
    return NStep(1, history=history, priority=priority)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Windows of `length` steps, a new one every `stride` steps, for recurrent policies.

    Args:
        burn_in: rows before the core that only warm up a recurrent state; fewer near the start of an episode.
        tail: what happens to steps at the end of an episode that no whole window holds. `short`: one shorter item, from where
            the next window would start; `aligned`: a window of full length, moved back to end with the episode (an episode
            shorter than `length` gives one shorter item); `drop`: nothing, so episodes shorter than `length` leave no item.
        history, priority: as for `NStep`.
    """

    length: int
    stride: int
    burn_in: int = 0
    tail: Literal["short", "aligned", "drop"] = "short"
    history: int = 0
    priority: ItemPriority = None

    def __post_init__(self) -> None:
        _require(self, "length", self.length, least=1)
        _require(self, "stride", self.stride, least=1)
        _require(self, "burn_in", self.burn_in, least=0)
        require_history(self, self.history)
        if self.tail not in ("short", "aligned", "drop"):
            raise ConfigError(f"Sequence: tail must be short, aligned or drop, got {self.tail!r}")
        if self.burn_in + self.history > LEAD_MAX:
            raise ConfigError(f"Sequence: burn_in + history must be <= {LEAD_MAX}, got {self.burn_in} + {self.history}")
        require_priority(self.priority)

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.priority)

    def items(self, steps: OpenSteps) -> ItemRuns:
        windows = Windows(length=self.length, stride=self.stride, lead=self.burn_in + self.history, tail=self.tail)
        return with_priority(self.priority, steps, windows.cut(steps), bootstrap_rows=1)


@dataclass(frozen=True, slots=True)
class Episode:
    """One item per episode of T steps, of its T + 1 rows.

    Args:
        max_length: steps that an item has at most.
        overlong: `split`: a longer episode becomes several items, each starting with the row that the one before ends with;
            `error`: it is refused.
        history, priority: as for `NStep`; only the second and later parts of a split episode have history.
    """

    max_length: int
    overlong: Overlong = "split"
    history: int = 0
    priority: ItemPriority = None

    def __post_init__(self) -> None:
        _require(self, "max_length", self.max_length, least=1)
        require_history(self, self.history)
        if self.overlong not in ("split", "error"):
            raise ConfigError(f"Episode: overlong must be split or error, got {self.overlong!r}")
        require_priority(self.priority)

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.priority)

    def items(self, steps: OpenSteps) -> ItemRuns:
        if self.overlong == "error":
            self._require_short(steps)
        windows = Windows(length=self.max_length, stride=self.max_length, lead=self.history, tail="short")
        return with_priority(self.priority, steps, windows.cut(steps), bootstrap_rows=1)

    def _require_short(self, steps: OpenSteps) -> None:
        episodes = steps.episodes
        over = np.flatnonzero(episodes.last_position > self.max_length)
        if len(over):
            raise TableError(
                f"an episode of environment {episodes.env[over[0]]} has {episodes.last_position[over[0]]} steps so far, where "
                f"Episode takes at most max_length {self.max_length}; raise it, or say overlong='split'"
            )


@dataclass(frozen=True, slots=True)
class EachRow:
    """Every row but FINAL ones is an item of its own: for rows that are complete in themselves (bandits, logged transitions).

    Args:
        history, priority: as for `NStep`.
    """

    history: int = 0
    priority: Priority = None

    def __post_init__(self) -> None:
        require_history(self, self.history)
        require_priority(self.priority)

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.priority)

    def items(self, steps: OpenSteps) -> ItemRuns:
        if self.history:
            runs = self._with_history(steps)
        else:
            row = steps.fresh_rows
            made = (steps.flags[row] & ENDS) == 0
            env = np.repeat(np.arange(len(steps.fresh)), steps.fresh)[made]
            start = row[made] - steps.offsets[env]
            runs = ItemRuns(env=env, start=start, length=np.ones(len(env), np.int64), keep=steps.keep_all())
        return with_priority(self.priority, steps, runs, bootstrap_rows=0)

    def _with_history(self, steps: OpenSteps) -> ItemRuns:
        episodes = steps.episodes
        made = (steps.flags[steps.fresh_rows] & ENDS) == 0
        row, of = steps.fresh_rows[made], steps.fresh_of[made]
        env, first = episodes.env[of], np.maximum(row - self.history, episodes.start[of])
        still = episodes.running
        needed = np.maximum(episodes.end[still] + 1 - self.history, episodes.start[still])
        return ItemRuns(
            env=env,
            start=first - steps.offsets[env],
            length=row - first + 1,
            lead=row - first,
            keep=steps.keep_from(needed, of_episodes=still),
        )


def require_history(rule: object, history: int) -> None:
    """Refuse more or less rows of lead than an item can have."""
    _require(rule, "history", history, least=0)
    if history > LEAD_MAX:
        raise ConfigError(f"{type(rule).__name__}: history must be <= {LEAD_MAX}, got {history}")


def _require(rule: object, name: str, value: int, *, least: int) -> None:
    if value < least:
        raise ConfigError(f"{type(rule).__name__}: {name} must be >= {least}, got {value}")
