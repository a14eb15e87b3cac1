"""Rows of sampled items, from Redis into one array [B, L].

    item (env, start, length) ─▶ its chunks by arithmetic ─▶ one MGET for the batch ─▶ rows where they belong

When all items have the same length and a chunk is one row, the reply already is the result; otherwise rows are copied into place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.replay.ranges import concatenated_ranges
from rollstream.replay.samples import SampledItems
from rollstream.replay.spec import TableSpec
from rollstream.spaces import Flag
from rollstream.store import ChunkReader, chunk_prefix

__all__ = ["FetchedRows", "RowFetch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRows:
    """Rows [B, L], PAD beyond each item's length, and which items [B] lack a row."""

    rows: npt.NDArray[np.void]
    missing: npt.NDArray[np.bool_]


class RowFetch:
    """Fetches rows of one table shard."""

    def __init__(self, reader: ChunkReader, *, table_id: str, shard: int, spec: TableSpec) -> None:
        self._reader = reader
        self._prefix = chunk_prefix(table_id, shard)
        self._chunk_rows = spec.chunk_rows
        self._chunk_bytes = spec.chunk_bytes
        self._dtype = spec.row_spec.dtype

    def read(self, items: SampledItems) -> FetchedRows:
        start, length = items.start.astype(np.int64), items.length.astype(np.int64)
        first = start // self._chunk_rows
        chunks = (start + length - 1) // self._chunk_rows - first + 1
        chunk_no = concatenated_ranges(first, chunks).astype(np.uint64)
        writer, env = np.repeat(items.writer, chunks), np.repeat(items.env, chunks)
        read = self._reader.read(self._prefix, self._chunk_bytes, writer, env, chunk_no)
        item = np.repeat(np.arange(len(items)), chunks)
        missing = np.zeros(len(items), np.bool_)
        missing[item[read.missing]] = True
        stored = read.payload.reshape(-1).view(self._dtype)
        longest = int(length.max()) if len(items) else 0
        if self._chunk_rows == 1 and len(stored) == len(items) * longest:
            return FetchedRows(rows=stored.reshape(len(items), longest), missing=missing)
        rows = np.zeros((len(items), longest), self._dtype)
        rows["flags"] = Flag.PAD
        place = concatenated_ranges(np.arange(len(items)) * longest, length)
        before = (np.cumsum(chunks) - chunks) * self._chunk_rows + start % self._chunk_rows
        rows.reshape(-1)[place] = stored[concatenated_ranges(before, length)]
        return FetchedRows(rows=rows, missing=missing)
