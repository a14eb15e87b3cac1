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
        episodes = steps.episodes
        row = np.arange(len(steps.flags))
        end = episodes.end[episodes.of_row]
        last = row + self.length
        complete = (last <= end) & (last >= episodes.fresh_from[episodes.of_row])
        if self.tail == "each":
            complete |= episodes.over_now[episodes.of_row] & (last > end) & (row < end)
        if self.stride > 1:
            complete &= steps.position % self.stride == 0
        if not episodes.real.all():
            complete &= episodes.real[episodes.of_row]
        start = np.flatnonzero(complete)
        last = np.minimum(start + self.length, end[start])
        if self.tail in ("short", "aligned"):
            tails, tail_last = self._tails(episodes)
            if len(tails):
                start, last = np.concatenate([start, tails]), np.concatenate([last, tail_last])
                in_order = np.argsort(start, kind="stable")
                start, last = start[in_order], last[in_order]
        return self._runs(steps, start, last)

    def _runs(self, steps: OpenSteps, start: Ints, last: Ints) -> ItemRuns:
        episodes = steps.episodes
        of = episodes.of_row[start]
        env = episodes.env[of]
        lead = None
        first = start
        if self.lead:
            first = np.maximum(start - self.lead, episodes.start[of])
            lead = start - first
        return ItemRuns(env=env, start=first - steps.offsets[env], length=last - first + 1, keep=self._keep(steps), lead=lead)

    def _tails(self, episodes: OpenEpisodes) -> tuple[Ints, Ints]:
        """First and last rows of the tails of episodes that were found to be over."""
        over = np.flatnonzero(episodes.over_now)
        steps = episodes.last_position[over]
        whole = np.maximum(0, (steps - self.length) // self.stride + 1)
        covered = np.where(whole > 0, (whole - 1) * self.stride + self.length, 0)
        begin = whole * self.stride
        there = (covered < steps) & (begin < steps)
        if self.tail == "aligned":
            begin = np.maximum(0, steps - self.length)
        last = episodes.end[over]
        return (last - steps + begin)[there], last[there]

    def _keep(self, steps: OpenSteps) -> Ints:
        """Rows from the first start whose window is not whole, and its lead."""
        episodes = steps.episodes
        still = np.flatnonzero(episodes.newest & (episodes.over_at > episodes.end) & episodes.real)
        newest = episodes.last_position[still]
        begin = -(-np.maximum(0, newest + 1 - self.length) // self.stride) * self.stride
        if self.tail == "aligned":
            begin = np.minimum(begin, np.maximum(0, newest - self.length))
        begin = np.maximum(0, np.minimum(begin - self.lead, newest + 1))
        rows = np.maximum(episodes.end[still] - newest + begin, episodes.start[still])
        return steps.keep_from(rows, of_episodes=still)
