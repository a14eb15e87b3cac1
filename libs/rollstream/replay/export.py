"""A table in a checkpoint: its index and its rows in one buffer, and back into a Redis that has neither.

The index comes from the shard, the rows straight from Redis (they never pass through a Python server). Rows are exported newest
items first, up to a bound on bytes; items whose rows do not fit, or were evicted meanwhile, are left out. Without rows
(`rows_max_bytes=0`) only the index is kept, which says what was there but cannot be restored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock
from rollstream.errors import TableError
from rollstream.replay.packed import pack, unpack
from rollstream.replay.ranges import concatenated_ranges
from rollstream.replay.spec import TableSpec
from rollstream.replay.table_state import ITEM_COLUMNS
from rollstream.spaces import RowSpec
from rollstream.store import Address, ChunkReader, ChunkWriter, Store, chunk_prefix, keys

__all__ = ["export_table", "restore_table"]

WRITE_SLICE_CHUNKS = 8192
STREAM_ARRAYS = ("stream_writer", "stream_sequence", "stream_environments", "stream_keep", "stream_end")


def export_table(index: bytes, *, reader: ChunkReader, table_id: str, shard: int, rows_max_bytes: int) -> bytes:
    """Add rows to the `index` that a shard gave."""
    state = unpack(index, what=f"index of table {table_id}")
    spec = TableSpec.model_validate(state.facts["spec"])
    arrays = {name: array for name, array in state.arrays.items() if name not in STREAM_ARRAYS}
    chunks = _Chunks(arrays, chunk_rows=spec.chunk_rows)
    kept = chunks.newest_items(rows_max_bytes // spec.chunk_bytes)
    used = np.unique(chunks.of_items(kept))
    read = reader.read(
        chunk_prefix(table_id, shard), spec.chunk_bytes, chunks.writer[used], chunks.env[used], chunks.chunk_no[used]
    )
    gone = np.zeros(len(chunks.chunk_no), np.bool_)
    gone[used[read.missing]] = True
    kept = kept & ~chunks.any_of(gone)
    there = ~read.missing
    exported: dict[str, npt.NDArray[Any]] = {name: array[kept] for name, array in arrays.items()}
    exported |= {
        "chunk_writer": chunks.writer[used][there],
        "chunk_env": chunks.env[used][there],
        "chunk_no": chunks.chunk_no[used][there],
        "chunk_payload": read.payload[there] if read.missing.any() else read.payload,
    }
    facts = {**state.facts, "items_in_table": len(arrays["number"])}
    return pack(facts, exported)


def restore_table(
    exported: bytes | bytearray | memoryview,
    *,
    store: Store,
    address: Address,
    clock: Clock,
    table_id: str,
    shard: int,
    row_spec: RowSpec,
) -> bytes:
    """Write the rows under a new writer's name; returns the index with their new addresses, to be given to the shard.

    Raises:
        SchemaMismatch: the export is damaged, or its rows are not those of the table.
        TableError: it holds no rows.
    """
    state = unpack(exported, what=f"export of table {table_id}")
    spec = TableSpec.model_validate(state.facts["spec"])
    row_spec.require_equal(spec.row_spec, ours=f"table {table_id}", theirs="the export")
    if len(state.arrays["number"]) == 0 and state.facts["items_in_table"]:
        raise TableError(
            f"export of table {table_id} holds no rows of its {state.facts['items_in_table']} items; raise rows_max_bytes "
            "of the checkpoint to restore tables"
        )
    arrays = dict(state.arrays)
    payload = arrays.pop("chunk_payload")
    old_writer, old_env, chunk_no = (arrays.pop(name) for name in ("chunk_writer", "chunk_env", "chunk_no"))
    streams, chunk_stream = np.unique(_stream_ids(old_writer, old_env), return_inverse=True)
    writer: Any = store.run("take a writer id", lambda client: client.incr(keys.writers()))
    writer_id = int(writer) & 0xFFFFFFFF
    chunks = ChunkWriter(address, clock=clock)
    try:
        for begin in range(0, len(payload), WRITE_SLICE_CHUNKS):
            part = slice(begin, begin + WRITE_SLICE_CHUNKS)
            env = chunk_stream[part].astype(np.uint32)
            chunks.write(chunk_prefix(table_id, shard), writer_id, env, chunk_no[part], payload[part])
    finally:
        chunks.close()
    arrays["env"] = np.searchsorted(streams, _stream_ids(arrays["writer"], arrays["env"])).astype(np.uint32)
    arrays["writer"] = np.full(len(arrays["env"]), writer_id, np.uint32)
    return pack(state.facts, arrays)


class _Chunks:
    """The chunks that items (oldest first) cover, one entry per (item, chunk), and back."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]], *, chunk_rows: int) -> None:
        assert set(ITEM_COLUMNS) <= set(arrays), "an index has all item columns"
        start, length = arrays["start"].astype(np.int64), arrays["length"].astype(np.int64)
        first = start // chunk_rows
        count = (start + length - 1) // chunk_rows - first + 1
        self._item = np.repeat(np.arange(len(start)), count)
        self._items = len(start)
        stream, dense = np.unique(_stream_ids(arrays["writer"], arrays["env"]), return_inverse=True)
        address = (np.repeat(dense, count).astype(np.uint64) << np.uint64(40)) | concatenated_ranges(first, count).astype(
            np.uint64
        )
        unique, self._chunk = np.unique(address, return_inverse=True)
        owner = stream[(unique >> np.uint64(40)).astype(np.int64)] if len(unique) else stream
        self.writer = (owner >> np.uint64(32)).astype(np.uint32)
        self.env = (owner & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        self.chunk_no = unique & np.uint64((1 << 40) - 1)

    def newest_items(self, chunks_max: int) -> npt.NDArray[np.bool_]:
        """The most of the newest items that together cover at most `chunks_max` chunks."""
        last_item_of_chunk = np.zeros(len(self.chunk_no), np.int64)
        np.maximum.at(last_item_of_chunk, self._chunk, self._item)
        new_chunks = np.bincount(last_item_of_chunk, minlength=self._items)
        needed = np.cumsum(new_chunks[::-1])[::-1]
        return needed <= chunks_max

    def of_items(self, which: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        chunks: npt.NDArray[np.int64] = self._chunk[which[self._item]]
        return chunks

    def any_of(self, chunk_marked: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Items that cover a marked chunk."""
        marked = np.zeros(self._items, np.bool_)
        marked[self._item[chunk_marked[self._chunk]]] = True
        return marked


def _stream_ids(writer: npt.NDArray[Any], env: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    return (writer.astype(np.uint64) << np.uint64(32)) | env.astype(np.uint64)
