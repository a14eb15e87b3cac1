"""Rows of a writer that may still become part of an item, and the cut of a rollout into chunks and items.

    per environment     0 ..... keep ........ written ... end
                        done    open windows  written     kept here until their chunk is full (chunk_rows > 1)

Only flags of open rows are kept; whole rows only as long as their chunk is not full. Pure state: `cut` computes what would be
written, `advance` makes it so once Redis has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.ranges import concatenated_ranges
from rollstream.replay.rules import ItemRule
from rollstream.spaces import Flag

__all__ = ["Cut", "OpenRows"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What one flush writes, and what remains.

    Attributes:
        chunk_env, chunk_no, payload: chunks [K] and their bytes [K, chunk_bytes].
        item_env, start, length: items [M], `start` counted from the environment's first row ever.
        keep, end: per environment [N]: first row that later items may start at; rows written.
        open_flags, open_offsets: flags of rows from `keep` on, environment after environment.
        carry, carry_offsets: rows that are not written yet.
        ended: per environment, whether its newest row ends an episode.
    """

    chunk_env: npt.NDArray[np.uint32]
    chunk_no: npt.NDArray[np.uint64]
    payload: npt.NDArray[np.uint8]
    item_env: npt.NDArray[np.uint32]
    start: npt.NDArray[np.uint64]
    length: npt.NDArray[np.uint32]
    keep: npt.NDArray[np.uint64]
    end: npt.NDArray[np.uint64]
    open_flags: npt.NDArray[np.uint8]
    open_offsets: Ints
    carry: npt.NDArray[np.void]
    carry_offsets: Ints
    ended: npt.NDArray[np.bool_]


class OpenRows:
    """State of all environments of one writer."""

    def __init__(self, dtype: np.dtype[np.void], *, environments: int, rule: ItemRule, chunk_rows: int) -> None:
        self._dtype = dtype
        self._rule = rule
        self._chunk_rows = chunk_rows
        self._keep = np.zeros(environments, np.int64)
        self._written = np.zeros(environments, np.int64)
        self._flags = np.zeros(0, np.uint8)
        self._flag_offsets = np.zeros(environments + 1, np.int64)
        self._carry = np.zeros(0, dtype)
        self._carry_offsets = np.zeros(environments + 1, np.int64)
        self._ended = np.ones(environments, np.bool_)

    def at_episode_end(self) -> npt.NDArray[np.bool_]:
        """Environments whose newest row ends an episode, or which have none."""
        return self._ended

    def cut(self, rows: npt.NDArray[np.void], offsets: Ints, *, closing: bool) -> Cut:
        """Chunks and items of new `rows` [R] (environment after environment by `offsets` [N+1])."""
        flags, flag_offsets = _joined(self._flags, self._flag_offsets, rows["flags"], offsets)
        pending, pending_offsets = rows, offsets
        if len(self._carry):
            pending, pending_offsets = _joined(self._carry, self._carry_offsets, rows, offsets)
        if closing and self._chunk_rows > 1:
            pending, pending_offsets = self._padded(pending, pending_offsets)
        counts = np.diff(pending_offsets)
        chunks = counts // self._chunk_rows
        written = chunks * self._chunk_rows
        payload, carry = pending, pending[:0]
        if self._chunk_rows > 1:
            payload = pending[concatenated_ranges(pending_offsets[:-1], written)]
            carry = pending[concatenated_ranges(pending_offsets[:-1] + written, counts - written)]
        end = self._written + written
        runs = self._rule.items(flags, flag_offsets, closing=closing)
        whole = self._keep[runs.env] + runs.start + runs.length <= end[runs.env]
        env, start, length = runs.env[whole], runs.start[whole], runs.length[whole]
        keep = runs.keep.copy()
        np.minimum.at(keep, runs.env[~whole], runs.start[~whole])
        keep = end - self._keep if closing else np.minimum(keep, np.maximum(0, end - self._keep))
        lengths = np.diff(flag_offsets)
        newest = np.maximum(flag_offsets[1:] - 1, 0)
        ended = np.where(np.diff(offsets) > 0, (flags[newest] & Flag.FINAL) != 0 if len(flags) else True, self._ended)
        return Cut(
            chunk_env=np.repeat(np.arange(len(chunks), dtype=np.uint32), chunks),
            chunk_no=concatenated_ranges(self._written // self._chunk_rows, chunks).astype(np.uint64),
            payload=_as_bytes(payload, self._dtype.itemsize * self._chunk_rows),
            item_env=env.astype(np.uint32),
            start=(self._keep[env] + start).astype(np.uint64),
            length=length.astype(np.uint32),
            keep=(self._keep + keep).astype(np.uint64),
            end=end.astype(np.uint64),
            open_flags=flags[concatenated_ranges(flag_offsets[:-1] + keep, np.maximum(0, lengths - keep))],
            open_offsets=_offsets(np.maximum(0, lengths - keep)),
            carry=carry,
            carry_offsets=_offsets(counts - written),
            ended=ended,
        )

    def advance(self, cut: Cut) -> None:
        """The flush of `cut` is in Redis."""
        self._keep = cut.keep.astype(np.int64)
        self._written = cut.end.astype(np.int64)
        self._flags, self._flag_offsets = cut.open_flags.copy(), cut.open_offsets
        self._carry, self._carry_offsets = cut.carry.copy(), cut.carry_offsets
        self._ended = cut.ended

    def _padded(self, rows: npt.NDArray[np.void], offsets: Ints) -> tuple[npt.NDArray[np.void], Ints]:
        """Fill each environment's last chunk with rows flagged PAD."""
        missing = -np.diff(offsets) % self._chunk_rows
        padding = np.zeros(int(missing.sum()), self._dtype)
        padding["flags"] = Flag.PAD
        return _joined(rows, offsets, padding, _offsets(missing))


def _joined(
    first: npt.NDArray[Any], first_offsets: Ints, second: npt.NDArray[Any], second_offsets: Ints
) -> tuple[npt.NDArray[Any], Ints]:
    """Per environment, its part of `first`, then its part of `second`."""
    before, after = np.diff(first_offsets), np.diff(second_offsets)
    offsets = _offsets(before + after)
    joined = np.empty(int(offsets[-1]), second.dtype)
    joined[concatenated_ranges(offsets[:-1], before)] = first
    joined[concatenated_ranges(offsets[:-1] + before, after)] = second
    return joined, offsets


def _offsets(lengths: Ints) -> Ints:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _as_bytes(rows: npt.NDArray[np.void], chunk_bytes: int) -> npt.NDArray[np.uint8]:
    return (
        np.ascontiguousarray(rows).view(np.uint8).reshape(-1, chunk_bytes) if len(rows) else np.zeros((0, chunk_bytes), np.uint8)
    )
