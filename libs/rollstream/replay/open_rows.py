"""Rows of a writer that may still become part of an item, and the cut of a rollout into chunks and items.

    per environment     0 ..... keep ........ written ... end
                        done    open rows     written     kept here until their chunk is full (chunk_rows > 1)

Rules see a row once it is written, so an item never points at rows that are not there. Of open rows only the columns that the
rules look at are kept; whole rows only as long as their chunk is not full. Pure state: `cut` computes what would be written,
`advance` makes it so once Redis has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.replay.cut_items import CutItems, ExplicitItems, gather
from rollstream.replay.open_steps import ENDS, FIRST, OpenSteps
from rollstream.replay.ranges import concatenated_ranges
from rollstream.replay.rules import EachRow, ItemRule
from rollstream.spaces import Flag

__all__ = ["Cut", "OpenRows"]

Ints = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]
ALWAYS = ("flags", "version")
LONG_RUN_ROWS = 256
"""Open rows of an environment from which on copying run by run costs less than an index of every row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What one flush writes, and what remains.

    Attributes:
        chunk_env, chunk_no, payload: chunks [K] and their bytes [K, chunk_bytes].
        items: the items that became complete.
        episode_env, episode_start: rows among the new ones that begin an episode [E].
        keep, end: per environment [N]: first row that later items may cover; rows written.
        open_columns, open_offsets: of rows from `keep` on, environment after environment.
        carry, carry_offsets: rows that are not written yet.
        before: per environment [N], position in its episode of the first open row.
        states: of each rule.
        ended: per environment, whether its newest row ends an episode.
        over: per environment, whether its newest episode is over and has all its items.
        explicit: items whose rows are not all written yet.
    """

    chunk_env: npt.NDArray[np.uint32]
    chunk_no: npt.NDArray[np.uint64]
    payload: npt.NDArray[np.uint8]
    items: CutItems
    episode_env: npt.NDArray[np.uint32]
    episode_start: npt.NDArray[np.uint64]
    keep: npt.NDArray[np.uint64]
    end: npt.NDArray[np.uint64]
    open_columns: Columns
    open_offsets: Ints
    carry: npt.NDArray[np.void]
    carry_offsets: Ints
    before: Ints
    states: tuple[Ints | None, ...]
    ended: npt.NDArray[np.bool_]
    over: npt.NDArray[np.bool_]
    explicit: ExplicitItems

    @property
    def item_env(self) -> npt.NDArray[np.uint32]:
        return self.items.env

    @property
    def start(self) -> npt.NDArray[np.uint64]:
        return self.items.start

    @property
    def length(self) -> npt.NDArray[np.uint32]:
        return self.items.length


class OpenRows:
    """State of all environments of one writer.

    Args:
        rule: how rows become items; several rules work over the same rows.
        keep_rows: newest rows of each environment that stay open in any case, for items that are asked for by name.
    """

    def __init__(
        self,
        dtype: np.dtype[np.void],
        *,
        environments: int,
        rule: ItemRule | Sequence[ItemRule],
        chunk_rows: int,
        keep_rows: int = 0,
    ) -> None:
        self._dtype = dtype
        self._rules: tuple[ItemRule, ...] = tuple(rule) if isinstance(rule, Sequence) else (rule,)
        self._chunk_rows = chunk_rows
        self._keep_rows = keep_rows
        self._positions = any(not isinstance(one, EachRow) or one.history for one in self._rules)
        self._names = _names(dtype, self._rules)
        self._keep = np.zeros(environments, np.int64)
        self._written = np.zeros(environments, np.int64)
        self._open: Columns = {name: np.zeros(0, dtype[name]) for name in self._names}
        self._open_offsets = np.zeros(environments + 1, np.int64)
        self._carry = np.zeros(0, dtype)
        self._carry_offsets = np.zeros(environments + 1, np.int64)
        self._before = np.zeros(environments, np.int64)
        self._states: tuple[Ints | None, ...] = (None,) * len(self._rules)
        self._ended = np.ones(environments, np.bool_)
        self._over = np.zeros(environments, np.bool_)
        self._explicit = ExplicitItems.none()

    def at_episode_end(self) -> npt.NDArray[np.bool_]:
        """Environments whose newest row ends an episode, or which have none."""
        return self._ended

    @property
    def waiting_rows(self) -> int:
        """Rows that are kept here because their chunk is not full."""
        return len(self._carry)

    def cut(
        self,
        rows: npt.NDArray[np.void],
        offsets: Ints,
        *,
        closing: bool,
        pad: npt.NDArray[np.bool_] | None = None,
        over: npt.NDArray[np.bool_] | None = None,
        explicit: ExplicitItems | None = None,
    ) -> Cut:
        """Chunks and items of new `rows` [R] (environment after environment by `offsets` [N+1]).

        Args:
            closing: no more rows will come: open windows end with what is there.
            pad: environments [N] whose last chunk is filled with padding, so that all their rows are written.
            over: environments [N] whose newest episode is over, though no row says so. Not looked at while rows of the environment
                wait for their chunk.
            explicit: items to make beside those of the rules, once their rows are written.
        """
        ended = self._ended_after(rows, offsets)
        pending, pending_offsets = rows, offsets
        if len(self._carry):
            pending, pending_offsets = _joined(self._carry, self._carry_offsets, rows, offsets)
        if self._chunk_rows > 1 and (closing or pad is not None):
            pending, pending_offsets = self._padded(pending, pending_offsets, None if closing else pad)
        counts = np.diff(pending_offsets)
        chunks = counts // self._chunk_rows
        fresh = chunks * self._chunk_rows
        payload, carry = pending, pending[:0]
        if self._chunk_rows > 1:
            payload = pending[concatenated_ranges(pending_offsets[:-1], fresh)]
            carry = pending[concatenated_ranges(pending_offsets[:-1] + fresh, counts - fresh)]
        end = self._written + fresh
        if over is not None:
            over = over & (counts == fresh)
        steps = self._steps(payload, fresh, closing=closing, over=over)
        runs = [rule.items(self._with_state(steps, state)) for rule, state in zip(self._rules, self._states, strict=True)]
        waiting = self._explicit if explicit is None else self._explicit.then(explicit)
        ready, waiting = waiting.split(end)
        keep = self._kept(steps, [run.keep for run in runs], end, waiting, closing=closing)
        items = gather(runs, ready, first_open=self._keep, version=steps.columns["version"], offsets=steps.offsets)
        first = np.flatnonzero((payload["flags"] & FIRST) != 0)
        fresh_offsets = _offsets(fresh)
        first_env = np.searchsorted(fresh_offsets, first, side="right") - 1
        lengths = steps.lengths - keep
        return Cut(
            chunk_env=np.repeat(np.arange(len(chunks), dtype=np.uint32), chunks),
            chunk_no=concatenated_ranges(self._written // self._chunk_rows, chunks).astype(np.uint64),
            payload=_as_bytes(payload, self._dtype.itemsize * self._chunk_rows),
            items=items,
            episode_env=first_env.astype(np.uint32),
            episode_start=(self._written[first_env] + first - fresh_offsets[first_env]).astype(np.uint64),
            keep=(self._keep + keep).astype(np.uint64),
            end=end.astype(np.uint64),
            open_columns={name: _from(column, steps.offsets, keep) for name, column in steps.columns.items()},
            open_offsets=_offsets(lengths),
            carry=carry,
            carry_offsets=_offsets(counts - fresh),
            before=_position_at(steps, keep) if self._positions else self._before,
            states=tuple(run.state for run in runs),
            ended=ended,
            over=(self._over & (fresh == 0)) | (over if over is not None else False),
            explicit=waiting,
        )

    def advance(self, cut: Cut) -> None:
        """The flush of `cut` is in Redis."""
        self._keep = cut.keep.astype(np.int64)
        self._written = cut.end.astype(np.int64)
        self._open, self._open_offsets = cut.open_columns, cut.open_offsets
        self._carry, self._carry_offsets = cut.carry.copy(), cut.carry_offsets
        self._before, self._states, self._ended = cut.before, cut.states, cut.ended
        self._over, self._explicit = cut.over, cut.explicit

    def _steps(
        self, payload: npt.NDArray[np.void], fresh: Ints, *, closing: bool, over: npt.NDArray[np.bool_] | None
    ) -> OpenSteps:
        columns, offsets = {name: payload[name] for name in self._names}, _offsets(fresh)
        if self._open_offsets[-1]:
            joined = {name: _joined(self._open[name], self._open_offsets, columns[name], offsets) for name in self._names}
            columns, offsets = {name: column for name, (column, _) in joined.items()}, joined["flags"][1]
        return OpenSteps(
            columns=columns,
            offsets=offsets,
            fresh=fresh,
            before=self._before,
            closing=closing,
            over=over,
            over_before=self._over if self._over.any() else None,
        )

    def _with_state(self, steps: OpenSteps, state: Ints | None) -> OpenSteps:
        return steps if state is None else steps.with_state(state)

    def _kept(self, steps: OpenSteps, keeps: list[Ints], end: Ints, waiting: ExplicitItems, *, closing: bool) -> Ints:
        lengths = steps.lengths
        if closing:
            return lengths
        keep = lengths
        for one in keeps:
            keep = np.minimum(keep, one)
        if self._keep_rows:
            keep = np.minimum(keep, np.maximum(0, lengths - self._keep_rows))
        if len(waiting):
            keep = keep.copy()
            np.minimum.at(keep, waiting.env, np.maximum(0, waiting.start - self._keep[waiting.env]))
        return keep

    def _ended_after(self, rows: npt.NDArray[np.void], offsets: Ints) -> npt.NDArray[np.bool_]:
        there = np.flatnonzero(np.diff(offsets))
        ended = self._ended.copy()
        ended[there] = (rows["flags"][offsets[1:][there] - 1] & ENDS) != 0
        return ended

    def _padded(
        self, rows: npt.NDArray[np.void], offsets: Ints, pad: npt.NDArray[np.bool_] | None
    ) -> tuple[npt.NDArray[np.void], Ints]:
        """Fill each environment's last chunk with rows flagged PAD."""
        missing = -np.diff(offsets) % self._chunk_rows
        if pad is not None:
            missing[~pad] = 0
        padding = np.zeros(int(missing.sum()), self._dtype)
        padding["flags"] = Flag.PAD
        return _joined(rows, offsets, padding, _offsets(missing))


def _joined(
    first: npt.NDArray[Any], first_offsets: Ints, second: npt.NDArray[Any], second_offsets: Ints
) -> tuple[npt.NDArray[Any], Ints]:
    """Per environment, its part of `first`, then its part of `second`."""
    before, after = np.diff(first_offsets), np.diff(second_offsets)
    offsets = _offsets(before + after)
    joined = np.empty((int(offsets[-1]), *second.shape[1:]), second.dtype)
    if len(joined) > LONG_RUN_ROWS * len(before):
        for env, at in enumerate(offsets[:-1].tolist()):
            old, new = first_offsets[env : env + 2], second_offsets[env : env + 2]
            middle = at + int(old[1] - old[0])
            joined[at:middle] = first[old[0] : old[1]]
            joined[middle : offsets[env + 1]] = second[new[0] : new[1]]
    else:
        joined[concatenated_ranges(offsets[:-1], before)] = first
        joined[concatenated_ranges(offsets[:-1] + before, after)] = second
    return joined, offsets


def _from(column: npt.NDArray[Any], offsets: Ints, keep: Ints) -> npt.NDArray[Any]:
    """Per environment, its rows from `keep` [N] on."""
    begin, lengths = offsets[:-1] + keep, np.diff(offsets) - keep
    total = int(lengths.sum())
    if total > LONG_RUN_ROWS * len(keep):
        runs = zip(begin.tolist(), offsets[1:].tolist(), strict=True)
        return np.concatenate([column[start:end] for start, end in runs])
    return column[concatenated_ranges(begin, lengths)] if total else column[:0].copy()


def _position_at(steps: OpenSteps, keep: Ints) -> Ints:
    """Per environment, the position in its episode of open row `keep`, or of the row that will come there."""
    before = steps.before.copy()
    there = np.flatnonzero(steps.lengths)
    if not len(there):
        return before
    at = keep[there]
    inside = at < steps.lengths[there]
    row = steps.offsets[there] + np.where(inside, at, at - 1)
    position = steps.position(row, steps.episodes.of(row)) + ~inside
    position[~inside & ((steps.flags[row] & ENDS) != 0)] = 0
    before[there] = position
    return before


def _names(dtype: np.dtype[np.void], rules: tuple[ItemRule, ...]) -> tuple[str, ...]:
    names = dict.fromkeys(ALWAYS)
    for rule in rules:
        for name in rule.columns:
            if name not in (dtype.names or ()) or dtype[name].shape:
                raise ConfigError(
                    f"{type(rule).__name__} looks at the column {name!r}, which must be a scalar column of the rows; they have: "
                    f"{', '.join(one for one in dtype.names or () if not dtype[one].shape)}"
                )
            names[name] = None
    return tuple(names)


def _offsets(lengths: Ints) -> Ints:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _as_bytes(rows: npt.NDArray[np.void], chunk_bytes: int) -> npt.NDArray[np.uint8]:
    if not len(rows):
        return np.zeros((0, chunk_bytes), np.uint8)
    return np.ascontiguousarray(rows).view(np.uint8).reshape(-1, chunk_bytes)
