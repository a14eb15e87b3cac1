"""Which chunks of a row space are needed: asked by the sweep for rows that nobody knows. Looks at all items; not for the hot path."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.group import TableGroup
from rollstream.replay.ranges import concatenated_ranges

__all__ = ["covered"]

CHUNK_BITS = np.uint64(40)


def covered(group: TableGroup, chunks: ChunkAddresses) -> npt.NDArray[np.bool_]:
    """Whether each of `chunks` [K] is covered by an item of some table, or may still be by an open writer. Shapes: -> [K].

    A chunk of an open writer beyond what it told the log counts as needed: its entry may be on the way.
    """
    rows, chunk_rows = group.rows, group.rows.chunk_rows
    stream = _stream_ids(chunks.writer, chunks.env)
    needed = np.zeros(len(chunks), np.bool_)
    for writer, streams in rows.streams.items():
        own = np.flatnonzero((chunks.writer == writer) & (chunks.env < len(streams.keep)))
        needed[own] = chunks.chunk_no[own].astype(np.int64) >= streams.keep[chunks.env[own]] // chunk_rows
    for table in group.tables.values():
        live = table.items.live()
        run, first = table.items.run[live], table.start_rows(live)
        low = first // chunk_rows
        count = (first + table.items.length[live] - 1) // chunk_rows - low + 1
        owner = np.repeat(_stream_ids(rows.runs.writer[run], rows.runs.env[run]), count)
        _, dense = np.unique(np.concatenate([owner, stream]), return_inverse=True)
        address = (dense.astype(np.uint64) << CHUNK_BITS) | np.concatenate(
            [concatenated_ranges(low, count).astype(np.uint64), chunks.chunk_no]
        )
        needed |= np.isin(address[len(owner) :], address[: len(owner)])
    return needed


def _stream_ids(writer: npt.NDArray[np.uint32], env: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    return (writer.astype(np.uint64) << np.uint64(32)) | env.astype(np.uint64)
