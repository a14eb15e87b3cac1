"""Windows over episodes: the cutting that `NStep`, `Sequence` and `Episode` share.

    length 4, stride 2    0  1  2  3  4  5  6  7E
                          [-----------]             a window of 4 steps is 5 rows: the last gives the bootstrap
                                [-----------]
                                      [-------]     the tail: steps 6 and 7 are in no whole window

A window starts at every `stride`-th row of its episode. It is made when its last row arrives, its episode's tail when the episode
is over. No window crosses the end of an episode; its lead stops at the episode's first row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.replay.open_steps import ItemRuns, OpenEpisodes, OpenSteps
from rollstream.replay.ranges import concatenated_ranges

__all__ = ["Tail", "Windows"]

Ints = npt.NDArray[np.int64]
Tail: TypeAlias = Literal["each", "short", "aligned", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Windows of `length` steps, one every `stride` rows, with up to `lead` rows before it.

    Attributes:
        tail: what happens at the end of an episode to starts whose window is not whole. `each`: a shorter item for every one;
            `short`: one shorter item, for the first; `aligned`: one item of full length that ends with the episode; `drop`: none.
            `short` and `aligned` make an item only when the whole windows leave a step out.
    """

    length: int
    stride: int
    lead: int
    tail: Tail

    def cut(self, steps: OpenSteps) -> ItemRuns:
        """The windows that are complete now."""
        episodes, of = steps.episodes, steps.fresh_of
        begin = steps.position(steps.fresh_rows, of) - self.length
        whole = begin >= 0
        if self.stride > 1:
            whole &= begin % self.stride == 0
        if not episodes.real.all():
            whole &= episodes.real[of]
        last, of = steps.fresh_rows[whole], of[whole]
        start = last - self.length
        if self.tail != "drop" and episodes.over_now.any():
            tails = self._each(episodes) if self.tail == "each" else self._tails(episodes)
            start, last, of = (np.concatenate(parts) for parts in zip((start, last, of), tails, strict=True))
            in_order = np.argsort(start, kind="stable")
            start, last, of = start[in_order], last[in_order], of[in_order]
        lead = None
        first = start
        if self.lead:
            first = np.maximum(start - self.lead, episodes.start[of])
            lead = start - first
        env = episodes.env[of]
        return ItemRuns(env=env, start=first - steps.offsets[env], length=last - first + 1, keep=self._keep(steps), lead=lead)

    def _each(self, episodes: OpenEpisodes) -> tuple[Ints, Ints, Ints]:
        """First and last rows, and episodes, of the windows that the ends of episodes cut short."""
        over = np.flatnonzero(episodes.over_now)
        end = episodes.end[over]
        first = np.maximum(end + 1 - self.length, episodes.start[over])
        counts = end - first
        return concatenated_ranges(first, counts), np.repeat(end, counts), np.repeat(over, counts)

    def _tails(self, episodes: OpenEpisodes) -> tuple[Ints, Ints, Ints]:
        """First and last rows, and episodes, of the tails of episodes that were found to be over."""
        over = np.flatnonzero(episodes.over_now)
        steps = episodes.last_position[over]
        whole = np.maximum(0, (steps - self.length) // self.stride + 1)
        covered = np.where(whole > 0, (whole - 1) * self.stride + self.length, 0)
        begin = whole * self.stride
        there = (covered < steps) & (begin < steps)
        if self.tail == "aligned":
            begin = np.maximum(0, steps - self.length)
        last = episodes.end[over]
        return (last - steps + begin)[there], last[there], over[there]

    def _keep(self, steps: OpenSteps) -> Ints:
        """Rows from the first start whose window is not whole, and its lead."""
        episodes = steps.episodes
        still = episodes.running
        newest = episodes.last_position[still]
        begin = -(-np.maximum(0, newest + 1 - self.length) // self.stride) * self.stride
        if self.tail == "aligned":
            begin = np.minimum(begin, np.maximum(0, newest - self.length))
        begin = np.maximum(0, np.minimum(begin - self.lead, newest + 1))
        rows = np.maximum(episodes.end[still] - newest + begin, episodes.start[still])
        return steps.keep_from(rows, of_episodes=still)
