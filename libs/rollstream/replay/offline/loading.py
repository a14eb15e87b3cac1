"""Recorded rows into a table: through ordinary writers, in flushes of a few megabytes, so that limiter and memory bounds hold.

A table with several shards is written by one writer for each; episodes are dealt out to them, because an episode lives on one shard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock
from rollstream.errors import TableError
from rollstream.replay.offline.recorded import OfflineRows
from rollstream.replay.writer import WriteResult
from rollstream.spaces import Episodes, Flag, Rollout

__all__ = ["LoadResult", "RowSink", "write_rows"]

FLUSH_BYTES = 4 << 20
"""Row bytes of one flush: long enough to cost nothing, short enough that the shard works meanwhile."""
FLUSH_ROWS = 1 << 15


class RowSink(Protocol):
    """What is needed of a writer of one environment (`rollstream.replay.TableWriter`)."""

    def append(self, rollout: Rollout, *, deadline_s: float | None = None) -> WriteResult: ...

    def flush(self, *, deadline_s: float) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What was written, and how fast."""

    rows: int
    items: int
    episodes: int
    bytes: int
    took_s: float

    @property
    def items_per_s(self) -> float:
        return self.items / self.took_s if self.took_s else 0.0

    @property
    def mb_per_s(self) -> float:
        """Of row data, in 10**6 bytes."""
        return self.bytes / self.took_s / 1e6 if self.took_s else 0.0


def write_rows(
    data: OfflineRows,
    writers: Sequence[RowSink],
    *,
    clock: Clock,
    deadline_s: float = 60.0,
    report: Callable[[int], None] = lambda rows: None,
) -> LoadResult:
    """Write all rows and wait until they are admitted.

    Args:
        writers: one for each shard, each made for one environment; `data` must have their table's columns (`OfflineRows.fitted`).
        deadline_s: how long each flush may wait for room.
        report: called with the number of rows written so far.

    Raises:
        TableError: there is nothing to write.
        DeadlineExceeded: the table's limiter waits for samples; say so with another limiter, or load before training.
    """
    if not len(data.rows):
        raise TableError(f"{data.source} holds no rows; nothing was written")
    began_s = clock.monotonic_s()
    parts = _dealt(data, len(writers))
    flush_rows = max(1, min(FLUSH_ROWS, FLUSH_BYTES // data.rows.itemsize))
    written = items = 0
    place = [part.start for part in parts]
    while any(at < part.stop for at, part in zip(place, parts, strict=True)):
        for index, (writer, part) in enumerate(zip(writers, parts, strict=True)):
            end = min(part.stop, place[index] + flush_rows)
            if end > place[index]:
                items += writer.append(_rollout(data.rows[place[index] : end]), deadline_s=deadline_s).items
                written += end - place[index]
                place[index] = end
                report(written)
    for writer in writers:
        writer.flush(deadline_s=deadline_s)
    return LoadResult(rows=written, items=items, episodes=data.episodes, bytes=data.bytes, took_s=clock.monotonic_s() - began_s)


def _dealt(data: OfflineRows, shards: int) -> list[slice]:
    """Rows of each shard: as equal as episodes allow, each a run of whole episodes."""
    rows = len(data.rows)
    begins = np.flatnonzero(data.rows["flags"] & Flag.FIRST) if data.episodic else np.arange(rows)
    wanted = np.arange(1, shards) * rows // shards
    at = np.searchsorted(begins, wanted)
    cuts = np.append(begins, rows)[at]
    bounds = [0, *cuts.tolist(), rows]
    return [slice(low, high) for low, high in pairwise(bounds)]


def _rollout(rows: npt.NDArray[np.void]) -> Rollout:
    """Rows of one environment as a writer takes them; no observation follows that they do not hold."""
    return Rollout(
        rows=rows,
        offsets=np.array([0, len(rows)], np.int64),
        next_observation={},
        version=int(rows["version"].max()) if len(rows) else 0,
        env_steps=int(np.count_nonzero((rows["flags"] & Flag.FINAL) == 0)),
        episodes=Episodes(),
    )
