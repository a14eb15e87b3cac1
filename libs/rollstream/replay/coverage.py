"""Which chunks are needed, by their address: for those that were found in Redis and that nobody may need any more.

The index counts holders by place and has no map from addresses to places; one is worked out here, from a copy of the columns, so
that another thread can do it while the index goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.group import TableGroup
from rollstream.replay.ranges import concatenated_ranges

__all__ = ["Coverage", "capture_coverage"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
CHUNK_BITS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Runs of chunks [K] that items cover or writers still hold, and up to where each writer has let go.

    Attributes:
        stream: u8 [K], writer and environment; first, chunks: [K].
        released: by writer, per environment: chunks below were let go of by the writer; items may need them.
    """

    stream: npt.NDArray[np.uint64]
    first: Ints
    chunks: Ints
    released: dict[int, Ints]

    def covers(self, addresses: ChunkAddresses) -> Bools:
        """Which of the chunks [A] are needed."""
        wanted = _streams(addresses.writer, addresses.env)
        streams = np.unique(self.stream)
        if not len(streams) or not len(wanted):
            return np.zeros(len(wanted), np.bool_)
        covered = np.unique(
            (np.repeat(np.searchsorted(streams, self.stream), self.chunks) << CHUNK_BITS)
            | concatenated_ranges(self.first, self.chunks)
        )
        at = np.minimum(np.searchsorted(streams, wanted), len(streams) - 1)
        address = (at << CHUNK_BITS) | addresses.chunk_no.astype(np.int64)
        place = np.minimum(np.searchsorted(covered, address), max(0, len(covered) - 1))
        found: Bools = (streams[at] == wanted) & (covered[place] == address) if len(covered) else np.zeros(len(wanted), np.bool_)
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
    stream: list[npt.NDArray[np.uint64]] = [np.zeros(0, np.uint64)]
    first: list[Ints] = [np.zeros(0, np.int64)]
    chunks: list[Ints] = [np.zeros(0, np.int64)]
    for table in group.tables.values():
        items = table.items
        slots = np.flatnonzero(items.alive[: items.high])
        run, start = items.run[slots], table.start_rows(slots)
        stream.append(_streams(rows.runs.writer[run], rows.runs.env[run]))
        first.append(start // chunk_rows)
        chunks.append((start + items.length[slots] - 1) // chunk_rows - first[-1] + 1)
    released = {}
    for writer, streams in rows.streams.items():
        env = np.arange(len(streams.keep), dtype=np.uint32)
        released[writer] = streams.keep // chunk_rows
        stream.append(_streams(np.full(len(env), writer, np.uint32), env))
        first.append(released[writer])
        chunks.append(-(-streams.end // chunk_rows) - released[writer])
    return Coverage(
        stream=np.concatenate(stream), first=np.concatenate(first), chunks=np.concatenate(chunks), released=released
    )


def _streams(writer: npt.NDArray[np.uint32], env: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    joined: npt.NDArray[np.uint64] = (writer.astype(np.uint64) << np.uint64(32)) | env.astype(np.uint64)
    return joined
