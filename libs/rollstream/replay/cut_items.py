"""Items of one flush: those that the rules made, and those that were asked for by name.

An item that was asked for waits here until the last of its rows is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.replay.open_steps import ItemRuns

__all__ = ["CutItems", "ExplicitItems", "gather"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplicitItems:
    """Items that a writer's owner asked for [K].

    Attributes:
        env, start, length: rows, `start` counted from the environment's first row ever.
        table: number of the table among the writer's tables.
        key, priority: NaN as priority stands for the highest so far.
    """

    env: Ints
    start: Ints
    length: Ints
    table: npt.NDArray[np.uint8]
    key: npt.NDArray[np.uint64]
    priority: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.env)

    @staticmethod
    def none() -> ExplicitItems:
        """No items."""
        nothing = np.zeros(0, np.int64)
        return ExplicitItems(
            env=nothing,
            start=nothing,
            length=nothing,
            table=np.zeros(0, np.uint8),
            key=np.zeros(0, np.uint64),
            priority=np.zeros(0, np.float32),
        )

    def then(self, other: ExplicitItems) -> ExplicitItems:
        """These, then `other`."""
        if not len(self):
            return other
        return ExplicitItems(
            env=np.concatenate([self.env, other.env]),
            start=np.concatenate([self.start, other.start]),
            length=np.concatenate([self.length, other.length]),
            table=np.concatenate([self.table, other.table]),
            key=np.concatenate([self.key, other.key]),
            priority=np.concatenate([self.priority, other.priority]),
        )

    def split(self, end: Ints) -> tuple[ExplicitItems, ExplicitItems]:
        """Those whose rows are all below `end` [N] of their environment, and the others."""
        if not len(self):
            return self, self
        ready = self.start + self.length <= end[self.env]
        return self.chosen(ready), self.chosen(~ready)

    def chosen(self, which: npt.NDArray[np.bool_]) -> ExplicitItems:
        """Those where `which` [K] is true."""
        return ExplicitItems(
            env=self.env[which],
            start=self.start[which],
            length=self.length[which],
            table=self.table[which],
            key=self.key[which],
            priority=self.priority[which],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CutItems:
    """Items [M] as they stand in the log; those that were asked for by name come last.

    Attributes:
        env, start, length: rows, `start` counted from the environment's first row ever.
        version: of the newest row of each.
        rule: number of the rule that made it.
        made: how many of them a rule made; the rest was asked for, and `rest` has their tables and keys.
        lead, priority: None when no item has one.
    """

    env: npt.NDArray[np.uint32]
    start: npt.NDArray[np.uint64]
    length: npt.NDArray[np.uint32]
    version: npt.NDArray[np.uint32]
    rule: npt.NDArray[np.uint8]
    made: int
    rest: ExplicitItems
    lead: npt.NDArray[np.uint16] | None
    priority: npt.NDArray[np.float32] | None

    def __len__(self) -> int:
        return len(self.env)


def gather(
    runs: Sequence[ItemRuns], rest: ExplicitItems, *, first_open: Ints, version: npt.NDArray[np.uint32], offsets: Ints
) -> CutItems:
    """The items of all rules, rule after rule, then those asked for.

    Args:
        first_open: per environment [N], its first open row.
        version, offsets: of open rows.
    """
    counts = [len(run.env) for run in runs]
    made = sum(counts)
    if len(runs) == 1 and not len(rest):
        env, start, length = runs[0].env, runs[0].start, runs[0].length
    else:
        env = np.concatenate([*(run.env for run in runs), rest.env])
        start = np.concatenate([*(run.start for run in runs), rest.start - first_open[rest.env]])
        length = np.concatenate([*(run.length for run in runs), rest.length])
    lead = priority = None
    if any(run.lead is not None for run in runs):
        lead = np.zeros(len(env), np.uint16)
        for run, at in _parts(runs, counts):
            if run.lead is not None:
                lead[at] = run.lead
    if len(rest) or any(run.priority is not None for run in runs):
        priority = np.full(len(env), np.nan, np.float32)
        priority[made:] = rest.priority
        for run, at in _parts(runs, counts):
            if run.priority is not None:
                priority[at] = run.priority
    newest = offsets[env] + start + length - 1
    return CutItems(
        env=env.astype(np.uint32),
        start=(first_open[env] + start).astype(np.uint64),
        length=length.astype(np.uint32),
        version=version[newest],
        rule=np.repeat(np.arange(len(runs), dtype=np.uint8), counts),
        made=made,
        rest=rest,
        lead=lead,
        priority=priority,
    )


def _parts(runs: Sequence[ItemRuns], counts: list[int]) -> list[tuple[ItemRuns, slice]]:
    ends = np.cumsum(counts).tolist()
    return [(run, slice(end - count, end)) for run, count, end in zip(runs, counts, ends, strict=True)]
