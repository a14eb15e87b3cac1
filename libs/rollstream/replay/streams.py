"""What a shard knows of each writer: how far each of its environments was written, and which rows it may still make items of.

    rows of one environment:   0 ....... keep ....... end
                                released | pinned     | not yet written

Items of the next flush may start at `keep` or later, so the chunks from there on must not be freed even when no item covers them
yet; chunks before it live exactly as long as an item covers them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.replay.chunks import ChunkAddresses, ChunkReferences
from rollstream.replay.log import InsertEntry
from rollstream.replay.ranges import concatenated_ranges
from rollstream.replay.runs import Runs

__all__ = ["Window", "WriterStreams", "addresses"]

Ints = npt.NDArray[np.int64]
ROW_BITS = 40
ROW_MASK = (1 << ROW_BITS) - 1


def addresses(env: Ints, row: Ints) -> Ints:
    """Environment and row as one number that sorts like both. Shapes: [K], [K] -> [K]."""
    packed: Ints = (env << ROW_BITS) | row
    return packed


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Chunks that items of one entry may cover: places, environment after environment.

    Attributes:
        places: places of chunks `low[e]`..`high[e] - 1` of environment 0, then of 1, and so on.
        base: position in `places` at which environment e begins.
        low, high: chunk numbers by environment.
    """

    places: Ints
    base: Ints
    low: Ints
    high: Ints


class WriterStreams:
    """State of one writer; one instance per writer and table shard.

    Attributes:
        run_address, run_place: episodes in which items may still begin, in order of (environment, first row) and packed so
            (see `addresses`), and their places in `Runs`.
    """

    def __init__(
        self,
        *,
        keep: Ints,
        end: Ints,
        sequence: int,
        pins: Ints,
        run_address: Ints | None = None,
        run_place: Ints | None = None,
    ) -> None:
        self.keep = keep
        self.end = end
        self.sequence = sequence
        self.pins = pins
        self.run_address = np.zeros(0, np.int64) if run_address is None else run_address
        self.run_place = np.zeros(0, np.int64) if run_place is None else run_place

    @staticmethod
    def first_seen(entry: InsertEntry) -> WriterStreams:
        """A writer whose earlier rows, if any, are unknown here: its streams begin at the lowest row that the entry names.

        Before a first entry there are none: then they begin at row 0, so that rows which no item needs are let go of too.
        """
        low = entry.keep.astype(np.int64) if entry.sequence > 1 else np.zeros(len(entry.keep), np.int64)
        inside = entry.env < len(low)
        np.minimum.at(low, entry.env[inside].astype(np.int64), entry.start[inside].astype(np.int64))
        return WriterStreams(keep=low, end=low.copy(), sequence=entry.sequence - 1, pins=np.zeros(0, np.int64))

    @staticmethod
    def restored(runs: Runs, *, keep: Ints, end: Ints, sequence: int, run_place: Ints) -> WriterStreams:
        """A writer as a snapshot tells it; its runs are held, its pins are to be set."""
        runs.hold(run_place)
        return WriterStreams(
            keep=keep,
            end=end,
            sequence=sequence,
            pins=np.zeros(0, np.int64),
            run_address=addresses(runs.env[run_place].astype(np.int64), runs.start[run_place]),
            run_place=run_place,
        )

    def problem(self, entry: InsertEntry) -> str:
        """Why `entry` cannot follow what this writer sent before; empty when it can."""
        keep, end = entry.keep.astype(np.int64), entry.end.astype(np.int64)
        if len(keep) != len(self.keep):
            return f"has {len(keep)} environments where the writer had {len(self.keep)}"
        if ((end < self.end) | (keep < self.keep) | (keep > end)).any():
            return "goes back in rows that were already written or released"
        return ""

    def chunks_problem(self, entry: InsertEntry, *, chunk_rows: int) -> str:
        """Whether an entry tells another number of stored sizes than it has new chunks; empty when not."""
        if entry.chunk_bytes is None:
            return ""
        fresh = int((-(-entry.end.astype(np.int64) // chunk_rows) - -(-self.end // chunk_rows)).sum())
        return "" if len(entry.chunk_bytes) == fresh else f"tells {len(entry.chunk_bytes)} sizes of {fresh} chunks"

    def usable(self, entry: InsertEntry) -> npt.NDArray[np.bool_]:
        """Items whose rows are there: neither released nor beyond what was written."""
        env = np.minimum(entry.env.astype(np.int64), len(self.keep) - 1)
        start, length = entry.start.astype(np.int64), entry.length.astype(np.int64)
        inside = (start >= self.keep[env]) & (length >= 1) & (start + length <= entry.end.astype(np.int64)[env])
        return inside & (entry.env < len(self.keep))

    def open_runs(self, entry: InsertEntry, runs: Runs) -> None:
        """Note the episodes that begin among the new rows, and one for each environment that is written for the first time."""
        if not len(entry.episode_env) and len(self.run_address):
            return
        env, start = entry.episode_env.astype(np.int64), entry.episode_start.astype(np.int64)
        inside = env < len(self.end)
        inside &= start < entry.end.astype(np.int64)[np.where(inside, env, 0)]
        begun = addresses(env[inside], start[inside])
        if not len(self.run_address):
            begun = np.concatenate([addresses(np.arange(len(self.keep)), self.keep), begun])
        fresh = np.unique(begun)
        if len(self.run_address):
            at = np.minimum(self.run_address.searchsorted(fresh), len(self.run_address) - 1)
            fresh = fresh[self.run_address[at] != fresh]
        if not len(fresh):
            return
        places = runs.allocate(writer=entry.writer, env=(fresh >> ROW_BITS).astype(np.uint32), start=fresh & ROW_MASK)
        at = self.run_address.searchsorted(fresh)
        self.run_address = np.insert(self.run_address, at, fresh)
        self.run_place = np.insert(self.run_place, at, places)

    def runs_of(self, env: Ints, start: Ints) -> Ints:
        """Places of the runs [M] in which rows `start` [M] of environments `env` [M] lie."""
        places: Ints = self.run_place[self.run_address.searchsorted(addresses(env, start), side="right") - 1]
        return places

    def close_runs(self, runs: Runs) -> None:
        """Let go of episodes that were followed by another before `keep`: no item will begin in them."""
        if len(self.run_address) <= len(self.keep):
            return
        env, start = self.run_address >> ROW_BITS, self.run_address & ROW_MASK
        done = np.zeros(len(env), np.bool_)
        done[:-1] = (env[1:] == env[:-1]) & (start[1:] <= self.keep[env[:-1]])
        if done.any():
            runs.release(self.run_place[done])
            self.run_address, self.run_place = self.run_address[~done], self.run_place[~done]

    def open_window(self, entry: InsertEntry, references: ChunkReferences, *, chunk_rows: int) -> Window:
        """Allocate the chunks that the entry wrote and put them behind those that are still pinned."""
        low, old_high = self.keep // chunk_rows, -(-self.end // chunk_rows)
        high = -(-entry.end.astype(np.int64) // chunk_rows)
        pinned, fresh = old_high - low, high - old_high
        ends = (high - low).cumsum()
        base = ends - (high - low)
        new = references.allocate(int(fresh.sum()), sizes=entry.chunk_bytes)
        places = new
        if len(self.pins):
            places = np.empty(int(ends[-1]), np.int64)
            places[concatenated_ranges(base, pinned)] = self.pins
            places[concatenated_ranges(base + pinned, fresh)] = new
        references.link(places)
        return Window(places=places, base=base, low=low, high=high)

    def close_window(
        self, entry: InsertEntry, window: Window, references: ChunkReferences, *, writer: int, chunk_rows: int
    ) -> None:
        """All items of the entry are in: let go of rows that no later item will cover."""
        keep = entry.keep.astype(np.int64)
        keep_chunk = keep // chunk_rows
        released = keep_chunk - window.low
        pinned = window.high - keep_chunk

        def addresses(which: Ints) -> ChunkAddresses:
            return ChunkAddresses(
                writer=np.full(len(which), writer, np.uint32),
                env=np.repeat(np.arange(len(keep), dtype=np.uint32), released)[which],
                chunk_no=concatenated_ranges(window.low, released)[which].astype(np.uint64),
            )

        if pinned.any():
            places = window.places[concatenated_ranges(window.base, released)]
            self.pins = window.places[concatenated_ranges(window.base + released, pinned)]
        else:
            places, self.pins = window.places, np.zeros(0, np.int64)
        references.release(places, np.ones(len(places), np.int64), addresses)
        self.keep, self.end = keep, entry.end.astype(np.int64)
        self.sequence = entry.sequence
