"""Which chunks are needed, by their address: for those that were found in Redis and that nobody may need any more.

The index counts holders by place and has no map from addresses to places; one is worked out here, from a copy of the columns, so
that another thread can do it while the index goes on. It takes some 25 bytes an item while it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.group import TableGroup
from rollstream.replay.ranges import concatenated_ranges
from rollstream.replay.stream_ids import NUMBER_BITS, Streams, stream_ids

__all__ = ["Coverage", "capture_coverage"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Runs of chunks [K] that items cover or writers still hold, and up to where each writer has let go.

    Attributes:
        stream: writer and environment of each run [K].
        first, chunks: number of its first chunk, and how many it has [K].
        released: by writer, per environment: chunks below were let go of by the writer; items may need them.
    """

    stream: Streams
    first: Ints
    chunks: npt.NDArray[np.int32]
    released: Mapping[int, Ints]

    def covers(self, addresses: ChunkAddresses) -> Bools:
        """Which of the chunks [A] are needed."""
        found = np.zeros(len(addresses), np.bool_)
        streams = np.unique(self.stream)
        if not len(streams) or not len(addresses):
            return found
        covered = np.searchsorted(streams, self.stream)
        covered <<= NUMBER_BITS
        if (self.chunks == 1).all():
            covered |= self.first
        else:
            covered = np.repeat(covered, self.chunks)
            covered |= concatenated_ranges(self.first, self.chunks.astype(np.int64))
        covered.sort()
        if not len(covered):
            return found
        wanted = stream_ids(addresses.writer, addresses.env)
        at = np.minimum(np.searchsorted(streams, wanted), len(streams) - 1)
        np.equal(streams[at], wanted, out=found)
        at <<= NUMBER_BITS
        at |= addresses.chunk_no.astype(np.int64)
        place = np.searchsorted(covered, at)
        np.minimum(place, len(covered) - 1, out=place)
        found &= covered[place] == at
        return found

    def let_go(self, addresses: ChunkAddresses) -> Bools:
        """Which of the chunks [A] their writer will never make an item over again."""
        found = np.zeros(len(addresses), np.bool_)
        for writer, released in self.released.items():
            mine = np.flatnonzero((addresses.writer == writer) & (addresses.env < len(released)))
            found[mine] = addresses.chunk_no[mine].astype(np.int64) < released[addresses.env[mine]]
        return found


def capture_coverage(group: TableGroup) -> Coverage:
    """Copy what is needed of all tables over the rows, and of their writers."""
    rows, chunk_rows = group.rows, group.rows.chunk_rows
    stream: list[Streams] = [np.zeros(0, np.uint64)]
    first: list[Ints] = [np.zeros(0, np.int64)]
    chunks: list[npt.NDArray[np.int32]] = [np.zeros(0, np.int32)]
    for table in group.tables.values():
        items = table.items
        slots = np.flatnonzero(items.alive[: items.high])
        run, start = items.run[slots], table.start_rows(slots)
        stream.append(stream_ids(rows.runs.writer[run], rows.runs.env[run]))
        first.append(start // chunk_rows)
        chunks.append(((start + items.length[slots] - 1) // chunk_rows - first[-1] + 1).astype(np.int32))
    released = {}
    for writer, streams in rows.streams.items():
        env = np.arange(len(streams.keep), dtype=np.uint32)
        released[writer] = streams.keep // chunk_rows
        stream.append(stream_ids(np.full(len(env), writer, np.uint32), env))
        first.append(released[writer])
        chunks.append((-(-streams.end // chunk_rows) - released[writer]).astype(np.int32))
    return Coverage(stream=np.concatenate(stream), first=np.concatenate(first), chunks=np.concatenate(chunks), released=released)
