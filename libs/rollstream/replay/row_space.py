"""The rows that the writers of one table write, as a shard knows them: who wrote how far, in which episodes, and which chunks
are still needed. Several tables may hold items over the same rows.

    begin(entry) ─▶ OpenEntry: chunks and runs of each of its items ─▶ tables admit them ─▶ close(opened)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.replay.chunks import ChunkAddresses, ChunkReferences
from rollstream.replay.log import InsertEntry
from rollstream.replay.runs import Runs
from rollstream.replay.streams import Window, WriterStreams

__all__ = ["OpenEntry", "RowSpace"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEntry:
    """An insert entry whose rows are known and whose items are being admitted.

    Attributes:
        usable: items [M] whose rows are there.
        run, offset, first_place, chunks: of items [M]: place of the run, row within it, place of the first chunk, how many chunks.
            Undefined where not usable.
    """

    entry: InsertEntry
    streams: WriterStreams
    window: Window
    usable: npt.NDArray[np.bool_]
    run: Ints
    offset: Ints
    first_place: Ints
    chunks: Ints


class RowSpace:
    """Rows of one shard.

    Attributes:
        row_clock: rows written so far.
        newest_version: of the weights that acted in any of them.
    """

    def __init__(self, *, chunk_rows: int) -> None:
        self.chunk_rows = chunk_rows
        self.references = ChunkReferences()
        self.runs = Runs()
        self.streams: dict[int, WriterStreams] = {}
        self.row_clock = 0
        self.newest_version = 0
        self.counters: Counter[str] = Counter()

    def begin(self, entry: InsertEntry) -> OpenEntry | None:
        """Take up the next insert entry; None when it is a repetition or cannot be (counted)."""
        streams = self.streams.get(entry.writer) or WriterStreams.first_seen(entry)
        if entry.sequence <= streams.sequence:
            self.counters["entries_repeated"] += 1
            return None
        if streams.problem(entry) or streams.chunks_problem(entry, chunk_rows=self.chunk_rows):
            self.counters["entries_refused"] += 1
            return None
        self.streams[entry.writer] = streams
        usable = streams.usable(entry)
        self.counters["items_without_rows"] += entry.items - int(np.count_nonzero(usable))
        self.row_clock += int(entry.end.sum()) - int(streams.end.sum())
        if entry.items:
            self.newest_version = max(self.newest_version, int(entry.version.max()))
        streams.open_runs(entry, self.runs)
        window = streams.open_window(entry, self.references, chunk_rows=self.chunk_rows)
        whole = bool(usable.all())
        env = (entry.env if whole else np.where(usable, entry.env, 0)).astype(np.int64)
        start = (entry.start if whole else np.where(usable, entry.start, streams.keep[0])).astype(np.int64)
        run = streams.runs_of(env, start)
        if self.chunk_rows == 1:
            first, chunks = start, entry.length.astype(np.int64)
        else:
            first = start // self.chunk_rows
            chunks = (start + entry.length - 1) // self.chunk_rows - first + 1
        at = window.base[env] + first - window.low[env]
        places = window.places[at if whole else np.where(usable, at, 0)] if len(window.places) else at
        return OpenEntry(
            entry=entry,
            streams=streams,
            window=window,
            usable=usable,
            run=run,
            offset=start - self.runs.start[run],
            first_place=places,
            chunks=chunks,
        )

    def close(self, opened: OpenEntry) -> None:
        """All items of the entry are in: let go of rows that no later item will cover."""
        streams, entry = opened.streams, opened.entry
        streams.close_window(entry, opened.window, self.references, writer=entry.writer, chunk_rows=self.chunk_rows)
        streams.close_runs(self.runs)

    def forget_writer(self, writer: int) -> None:
        """A writer that is gone for good: its pinned rows and episodes are needed by items only. Not while its entry is open."""
        streams = self.streams.pop(writer, None)
        if streams is None:
            return
        farewell = InsertEntry(
            writer=writer,
            sequence=streams.sequence + 1,
            keep=streams.end.astype(np.uint64),
            end=streams.end.astype(np.uint64),
            start=np.zeros(0, np.uint64),
            env=np.zeros(0, np.uint32),
            length=np.zeros(0, np.uint32),
            version=np.zeros(0, np.uint32),
            episode_env=np.zeros(0, np.uint32),
            episode_start=np.zeros(0, np.uint64),
        )
        window = streams.open_window(farewell, self.references, chunk_rows=self.chunk_rows)
        streams.close_window(farewell, window, self.references, writer=writer, chunk_rows=self.chunk_rows)
        self.runs.release(streams.run_place)

    def take_garbage(self) -> ChunkAddresses:
        """Chunks that no item and no writer needs any more, since the last call."""
        return self.references.take_garbage()

    def held_bytes(self, chunk_memory_bytes: int, *, value_bytes: int) -> int:
        """Redis memory of all held chunks, of which each takes `chunk_memory_bytes` where its value is of `value_bytes`."""
        if not self.references.stored_bytes:
            return self.references.held * chunk_memory_bytes
        return self.references.stored_bytes + self.references.held * (chunk_memory_bytes - value_bytes)
