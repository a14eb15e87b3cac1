"""What an item rule sees: the rows of all environments that may still become part of an item, and where their episodes lie.

    environment 0                      environment 1
    2F  3E | 0F  1  2  3               5  6  7            position in the episode (F: FIRST, E: FINAL)
    '-- A -'  '---- B ----'            '-- C -'           episodes: A is over, B and C are open
                     '----- fresh ---       '----- fresh  rows that came with this flush

An item is made when the row arrives that completes it, and only then: so a rule needs no memory of what it has made, rules of
several tables can share the same open rows, and a flush that has to be repeated gives the same items again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.ranges import concatenated_ranges
from rollstream.spaces import Flag

__all__ = ["ItemRuns", "OpenEpisodes", "OpenSteps"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BEGINS = int(Flag.FIRST | Flag.PAD)
ENDS = int(Flag.FINAL | Flag.PAD)
FIRST, PAD = int(Flag.FIRST), int(Flag.PAD)
NEVER = np.iinfo(np.int64).max
"""Row at which an episode that is still open is known to be over."""
LONG_AGO = -1
"""Row at which an episode is known to be over whose items have all been made."""


@dataclass(frozen=True, kw_only=True)
class OpenEpisodes:
    """Episodes (their visible parts) among open rows, in order. Row numbers count over all open rows.

    Attributes:
        env, start, end: [E], environment, first and last row.
        before: [E], rows of the episode that came before `start` and are no longer open.
        over_at: [E], the row that tells that the episode is over: its FINAL row, the row after an episode that was cut, or NEVER.
        fresh_from: [E], first row of the environment that came with this flush.
        real: [E], False for runs of padding.
        newest: [E], whether it is the last of its environment.
    """

    env: Ints
    start: Ints
    end: Ints
    before: Ints
    over_at: Ints
    fresh_from: Ints
    real: Bools
    newest: Bools

    @cached_property
    def over_now(self) -> Bools:
        """[E], whether it became known with this flush that the episode is over."""
        over: Bools = self.real & (self.over_at >= self.fresh_from) & (self.over_at != NEVER)
        return over

    @cached_property
    def running(self) -> Ints:
        """Numbers of the episodes that go on."""
        return np.flatnonzero(self.real & (self.over_at == NEVER))

    def of(self, rows: Ints) -> Ints:
        """Number of the episode that each of these rows belongs to."""
        return np.searchsorted(self.start, rows, side="right") - 1

    @property
    def last_position(self) -> Ints:
        """[E], position of the last row in its episode: the number of steps, when the episode is over."""
        return self.end - self.start + self.before


@dataclass(frozen=True, kw_only=True)
class OpenSteps:
    """Open rows of N environments, environment after environment.

    Attributes:
        columns: `flags` [M], and what the rules asked for by `columns`.
        offsets: [N+1], rows of environment e are `offsets[e]..offsets[e+1]`.
        fresh: [N], how many rows at the end of each environment came with this flush.
        before: [N], position in its episode of the first open row.
        closing: no more rows will come, so open episodes are over.
        over: [N], whether the newest episode of an environment is known to be over, though no row says so; None: of none.
        over_before: [N], whether that was known with an earlier flush of the episode of the newest row that is not fresh.
        state: [N], what the rule returned as `ItemRuns.state` with the flush before; zeros at first.
    """

    columns: dict[str, npt.NDArray[Any]]
    offsets: Ints
    fresh: Ints
    before: Ints
    closing: bool = False
    over: Bools | None = None
    over_before: Bools | None = None
    state: Ints | None = None

    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        return self.columns["flags"]

    @cached_property
    def lengths(self) -> Ints:
        """[N], open rows of each environment."""
        return np.diff(self.offsets)

    @cached_property
    def fresh_rows(self) -> Ints:
        """[F], the rows that came with this flush. Rules look at these; of older rows there may be very many."""
        return concatenated_ranges(self.offsets[1:] - self.fresh, self.fresh)

    @cached_property
    def fresh_of(self) -> Ints:
        """[F], number of the episode of each fresh row."""
        return self.episodes.of(self.fresh_rows)

    def position(self, rows: Ints, of: Ints) -> Ints:
        """Of rows in their episodes `of`, from 0."""
        return rows - self.episodes.start[of] + self.episodes.before[of]

    @cached_property
    def episodes(self) -> OpenEpisodes:
        """Where the episodes lie."""
        flags, lengths = self.flags, self.lengths
        begins = (flags & BEGINS) != 0
        ends = (flags & ENDS) != 0
        begins[1:] |= ends[:-1]
        occupied = np.flatnonzero(lengths)
        begins[self.offsets[occupied]] = True
        start = np.flatnonzero(begins)
        counts = np.diff(start, append=len(flags))
        end = start + counts - 1
        env = np.searchsorted(self.offsets, start, side="right") - 1
        newest = end == self.offsets[env + 1] - 1
        final = ends[end]
        over_at = np.where(final, end, np.where(newest, NEVER, end + 1))
        if self.closing:
            over_at[newest & ~final] = len(flags)
        elif self.over is not None:
            over_at[newest & ~final & self.over[env]] = len(flags)
        if self.over_before is not None:
            old = np.flatnonzero(self.over_before & (self.lengths > self.fresh))
            last = self.offsets[1:][old] - self.fresh[old] - 1
            over_at[np.searchsorted(start, last, side="right") - 1] = LONG_AGO
        before = np.zeros(len(start), np.int64)
        first = (start == self.offsets[env]) & ((flags[start] & FIRST) == 0)
        before[first] = self.before[env[first]]
        return OpenEpisodes(
            env=env,
            start=start,
            end=end,
            before=before,
            over_at=over_at,
            fresh_from=(self.offsets[1:] - self.fresh)[env],
            real=(flags[start] & PAD) == 0,
            newest=newest,
        )

    def with_state(self, state: Ints) -> OpenSteps:
        """The same rows for the rule with this state."""
        steps = dataclasses.replace(self, state=state)
        for name in ("lengths", "episodes", "fresh_rows", "fresh_of"):  # what one rule has computed serves the others
            if name in self.__dict__:
                steps.__dict__[name] = self.__dict__[name]
        return steps

    def keep_all(self) -> Ints:
        """`ItemRuns.keep` of a rule that is done with all rows."""
        return self.lengths

    def keep_from(self, rows_of_newest: Ints, *, of_episodes: Ints) -> Ints:
        """`ItemRuns.keep`, given the first row that is still needed of some episodes that are the newest of their environments."""
        keep = self.lengths.copy()
        env = self.episodes.env[of_episodes]
        keep[env] = np.minimum(keep[env], rows_of_newest - self.offsets[env])
        return keep


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRuns:
    """Items over open rows.

    Attributes:
        env, start, length: of each item [K]; `start` counts within its environment's open rows, and both include the lead.
        lead: rows before the item's core [K]; None: none.
        keep: per environment [N], the first open row that a later item may cover; rows before it are done with.
        priority: of each item [K]; None: the highest so far.
        state: per environment [N], given back to the rule with the next flush.
    """

    env: Ints
    start: Ints
    length: Ints
    keep: Ints
    lead: Ints | None = None
    priority: npt.NDArray[np.float32] | None = None
    state: Ints | None = None
