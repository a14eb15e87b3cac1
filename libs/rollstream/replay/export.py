"""A table as parts of an export: for each shard its chunks, as they are stored, then its items.

The index comes from the shard, the rows straight from Redis (they never pass through a Python server) and are neither decoded nor
kept: memory holds one slice of them. Rows are exported newest items first, up to a bound on bytes; items whose rows do not fit, or
were evicted meanwhile, are left out. Without rows (`rows_max_bytes=0`) only the index is kept, which says what was there but cannot
be restored. A table that shares the rows of another brings the rows of its own items along.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.replay.export_parts import ExportPart
from rollstream.replay.packed import PackedArrays
from rollstream.replay.spec import TableSpec
from rollstream.replay.stream_ids import NUMBER_BITS, NUMBER_MASK, chunk_addresses, distinct, envs_of, stream_ids, writers_of
from rollstream.store import ChunkReader, chunk_prefix

__all__ = ["ItemChunks", "ShardExport"]

SLICE_BYTES = 8 << 20
SLICE_CHUNKS_MAX = 32_768

Arrays = dict[str, npt.NDArray[Any]]


class ShardExport:
    """One shard's part of an export.

    Args:
        index: what the shard said (`table_state`).
        rows_id: id of the table that the rows belong to.
        chunk_bytes: stored bytes of one chunk; a mean where they vary.
    """

    def __init__(
        self, index: PackedArrays, *, reader: ChunkReader, rows_id: str, shard: int, spec: TableSpec, chunk_bytes: float
    ) -> None:
        self.items = 0
        self.rows_bytes = 0
        self._index = index
        self._reader = reader
        self._prefix = chunk_prefix(rows_id, shard)
        self._shard = shard
        self._spec = spec
        self._chunk_bytes = max(1.0, chunk_bytes)

    def parts(self, *, rows_max_bytes: int | None) -> Iterator[ExportPart]:
        """The chunks, slice by slice, then the items of which all rows are there."""
        arrays: Arrays = dict(self._index.arrays)
        chunks = ItemChunks(arrays, chunk_rows=self._spec.chunk_rows)
        most = len(chunks.chunk_no) if rows_max_bytes is None else int(rows_max_bytes // self._chunk_bytes)
        kept = chunks.newest_items(most)
        used = np.arange(len(chunks.chunk_no)) if kept.all() else np.unique(chunks.of_items(kept))
        gone = np.zeros(len(chunks.chunk_no), np.bool_)
        step = max(1, min(SLICE_CHUNKS_MAX, int(SLICE_BYTES // self._chunk_bytes)))
        for begin in range(0, len(used), step):
            which = used[begin : begin + step]
            stored, missing = self._stored(chunks, which)
            gone[which[missing]] = True
            yield ExportPart(kind="ROWS", content=PackedArrays(facts={"shard": self._shard}, arrays=stored))
        if gone.any():
            kept &= ~chunks.any_of(gone)
        self.items = int(kept.sum())
        facts = {**self._index.facts, "shard": self._shard, "items_in_table": len(kept), "stored_bytes": self.rows_bytes}
        items = arrays if kept.all() else {name: array[kept] for name, array in arrays.items()}
        yield ExportPart(kind="INDX", content=PackedArrays(facts=facts, arrays=items))

    def _stored(self, chunks: ItemChunks, which: npt.NDArray[np.int64]) -> tuple[Arrays, npt.NDArray[np.bool_]]:
        """Addresses and values of some chunks, without those that are missing [K]."""
        writer, env, number = chunks.writer[which], chunks.env[which], chunks.chunk_no[which]
        values: Arrays = {}
        if self._spec.resolved_encoding == "raw":
            read = self._reader.read(self._prefix, self._spec.chunk_bytes, writer, env, number)
            missing = read.missing
            values["payload"] = read.payload[~missing] if missing.any() else read.payload
        else:
            found = self._reader.read_values(self._prefix, writer, env, number)
            missing = np.fromiter((value is None for value in found), np.bool_, len(found))
            there = [value for value in found if value is not None]
            values["payload"] = np.frombuffer(b"".join(there), np.uint8)
            values["value_bytes"] = np.fromiter(map(len, there), np.uint32, len(there))
        self.rows_bytes += values["payload"].nbytes
        if missing.any():
            writer, env, number = writer[~missing], env[~missing], number[~missing]
        return {"writer": writer, "env": env, "number": number, **values}, missing


class ItemChunks:
    """The chunks that items (oldest first) cover, one entry per (item, chunk), and back."""

    def __init__(self, arrays: Arrays, *, chunk_rows: int) -> None:
        start, length = arrays["start"].astype(np.int64), arrays["length"].astype(np.int64)
        first = start // chunk_rows
        count = (start + length - 1) // chunk_rows - first + 1
        self._item = np.repeat(np.arange(len(start)), count)
        self._items = len(start)
        found = chunk_addresses(stream_ids(arrays["writer"], arrays["env"]), first, count)
        chunks = distinct(found.address)
        self._chunk = chunks.which
        owner = found.streams[chunks.values >> NUMBER_BITS]
        self.writer, self.env = writers_of(owner), envs_of(owner)
        self.chunk_no = (chunks.values & NUMBER_MASK).astype(np.uint64)

    def newest_items(self, chunks_max: int) -> npt.NDArray[np.bool_]:
        """The most of the newest items that together cover at most `chunks_max` chunks."""
        if chunks_max >= len(self.chunk_no):
            return np.ones(self._items, np.bool_)
        last_item_of_chunk = np.zeros(len(self.chunk_no), np.int64)
        np.maximum.at(last_item_of_chunk, self._chunk, self._item)
        new_chunks = np.bincount(last_item_of_chunk, minlength=self._items)
        needed = np.cumsum(new_chunks[::-1])[::-1]
        fits: npt.NDArray[np.bool_] = needed <= chunks_max
        return fits

    def of_items(self, which: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Chunks of the marked items, with repeats."""
        chunks: npt.NDArray[np.int64] = self._chunk[which[self._item]]
        return chunks

    def any_of(self, chunk_marked: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Items that cover a marked chunk."""
        marked = np.zeros(self._items, np.bool_)
        marked[self._item[chunk_marked[self._chunk]]] = True
        return marked
