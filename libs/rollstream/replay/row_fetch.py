"""Rows of sampled items, from Redis into one array [B, L, ...] per column.

    item (env, start, length, lead) ─▶ its chunks by arithmetic ─▶ one MGET for the batch ─▶ cells where they belong

    plain     a chunk is as long as an item, or one row, and all items are alike: columns are received where they stay
    otherwise chunks are received (and decoded) aside, their rows copied into place

The rows of several shards go into one batch, each shard's straight to its place. Views and stacks are made at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.replay.encoding import Codec
from rollstream.replay.ranges import concatenated_ranges
from rollstream.replay.run_batch import FetchedRows, RunBatch, RunLayout, cells
from rollstream.replay.samples import SampledItems
from rollstream.replay.spec import TableSpec
from rollstream.spaces.opaque import opaque
from rollstream.store import ChunkReader, chunk_prefix

__all__ = ["FetchedRows", "RowFetch", "read_joined"]

Ints: TypeAlias = npt.NDArray[np.int64]
Blocks: TypeAlias = Mapping[str, npt.NDArray[np.void]]
Place: TypeAlias = slice | Ints
"""Where some items stand in a batch."""

REPEATS_PAY_BYTES = 4096
"""Chunks from which on repeated ones are looked for: below, sorting costs what fetching some of them twice does."""
COPY_BYTES = 256 << 10
"""Rows are copied in portions of this size, which stay in the processor's cache between leaving a chunk and reaching a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunks:
    """The chunks that items cover, one entry per (item, chunk), [K]; `counts` and `offset` (of the first row) per item [B]."""

    writer: npt.NDArray[np.uint32]
    env: npt.NDArray[np.uint32]
    number: npt.NDArray[np.uint64]
    counts: Ints
    offset: Ints

    @staticmethod
    def of(items: SampledItems, length: Ints, *, chunk_rows: int) -> _Chunks:
        start = items.start.astype(np.int64)
        if chunk_rows == 1:
            first, counts, offset = start, length, np.zeros(len(length), np.int64)
        else:
            first = start // chunk_rows
            offset = start - first * chunk_rows
            counts = (offset + length - 1) // chunk_rows + 1
        if int(counts.max()) == 1:
            return _Chunks(writer=items.writer, env=items.env, number=first.astype(np.uint64), counts=counts, offset=offset)
        return _Chunks(
            writer=np.repeat(items.writer, counts),
            env=np.repeat(items.env, counts),
            number=concatenated_ranges(first, counts).astype(np.uint64),
            counts=counts,
            offset=offset,
        )

    def repeats(self) -> _Repeats | None:
        """Which chunks are the same; None: nobody knows, because their numbers do not fit into 64 bits."""
        bits = [int(numbers.max()).bit_length() for numbers in (self.writer, self.env, self.number)]
        if sum(bits) > 63:
            return None
        address = self.writer.astype(np.uint64) << np.uint64(bits[1] + bits[2])
        address |= self.env.astype(np.uint64) << np.uint64(bits[2])
        _, once, chunk = np.unique(address | self.number, return_index=True, return_inverse=True)
        return _Repeats(once=once, chunk=chunk)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repeats:
    """`once` [U]: a place of each different chunk; `chunk` [K]: which of these each chunk is."""

    once: Ints
    chunk: Ints


class RowFetch:
    """Fetches rows of one table shard. Not thread-safe, as its reader.

    Args:
        table_id: of the table that the rows belong to (`TableSpec.rows_of`).
        spec: of the table that is sampled.
    """

    def __init__(self, reader: ChunkReader, *, table_id: str, shard: int, spec: TableSpec) -> None:
        self.layout = RunLayout(spec)
        self.table_id = table_id
        self._reader = reader
        self._prefix = chunk_prefix(table_id, shard)
        self._chunk_rows = spec.chunk_rows
        self._dtype = spec.row_spec.dtype
        self._codec = Codec(spec) if spec.resolved_encoding == "zstd" else None
        self._repeats_pay = self._codec is not None or spec.chunk_bytes >= REPEATS_PAY_BYTES
        self._asked: tuple[SampledItems, _Chunks] | None = None

    def read(self, items: SampledItems) -> FetchedRows:
        """Rows of `items`, in their order.

        Raises:
            SchemaMismatch: rows of another layout are stored there, or they are damaged, or too few for the table's views or stacks.
            StoreError, StoreRefused, StoreUnavailable: as `ChunkReader.read`.
        """
        return read_joined([self], [items], places=[slice(0, len(items))])

    def ask(self, items: SampledItems) -> None:
        """Let Redis begin with the rows of the very `items` that the next `read` will be for, where that is possible."""
        if self._codec is not None or not len(items):
            return
        chunks = _Chunks.of(items, items.length.astype(np.int64), chunk_rows=self._chunk_rows)
        if self._repeats(chunks) is None:
            self._reader.ask(self._prefix, chunks.writer, chunks.env, chunks.number)
            self._asked = (items, chunks)

    def read_into(self, batch: RunBatch, items: SampledItems, place: Place) -> None:
        """Rows of `items` to their `place` in a batch."""
        if not len(items):
            return
        length, lead = items.length.astype(np.int64), items.lead.astype(np.int64)
        asked, self._asked = self._asked, None
        known = asked is not None and asked[0] is items
        chunks = asked[1] if asked is not None and known else _Chunks.of(items, length, chunk_rows=self._chunk_rows)
        alike = batch.full or bool((length == length[0]).all() and (lead == lead[0]).all())
        alike = alike and (self._chunk_rows == 1 or bool((chunks.offset == chunks.offset[0]).all()))
        repeats = None if known else self._repeats(chunks)
        if repeats is None and alike and isinstance(place, slice):
            missing = self._plain(batch, chunks, place)
            if missing is None:
                blocks, missing = self._blocks(chunks, None)
                _copy_alike(
                    batch, blocks, place, offset=int(chunks.offset[0]), start=batch.left - int(lead[0]), length=int(length[0])
                )
        else:
            blocks, missing = self._blocks(chunks, repeats)
            self._scatter(batch, blocks, chunks, repeats, place, length=length, lead=lead)
            missing = missing if repeats is None else missing[repeats.chunk]
        if missing.any():
            gone = np.zeros(len(items), np.bool_)
            gone[np.repeat(np.arange(len(items)), chunks.counts)[missing]] = True
            batch.missing[place] = gone

    def _repeats(self, chunks: _Chunks) -> _Repeats | None:
        """Repeated chunks, when fetching them once saves more than copying their rows costs."""
        if not self._repeats_pay:
            return None
        repeats = chunks.repeats()
        if repeats is None:
            return None
        fetched, asked = len(repeats.once), len(chunks.number)
        return repeats if fetched < (asked if self._codec is not None else 0.8 * asked) else None

    def _plain(self, batch: RunBatch, chunks: _Chunks, place: slice) -> npt.NDArray[np.bool_] | None:
        """Receive columns where they stay; returns missing [K], or None when chunks and cells do not fit together."""
        if self._codec is not None or not batch.full or chunks.offset[0] or batch.length % self._chunk_rows:
            return None
        count = len(chunks.number)
        shape = (count,) if self._chunk_rows == 1 else (count, self._chunk_rows)
        out = {name: column[place].reshape(*shape, *column.shape[2:]) for name, column in batch.columns.items()}
        return self._reader.read_columns(
            self._prefix, self._dtype, chunks.writer, chunks.env, chunks.number, out=out, chunk_rows=self._chunk_rows
        )

    def _blocks(self, chunks: _Chunks, repeats: _Repeats | None) -> tuple[Blocks, npt.NDArray[np.bool_]]:
        """Rows of chunks (each different one once) as cells [chunks, chunk_rows] by column, and which chunks are missing."""
        which = slice(None) if repeats is None else repeats.once
        writer, env, number = chunks.writer[which], chunks.env[which], chunks.number[which]
        count, rows = len(number), self._chunk_rows
        if self._codec is None:
            out: dict[str, npt.NDArray[Any]] = {}
            for name, dtype, shape in self.layout.columns:
                out[name] = np.empty((count, rows, *shape), dtype)
            flat = {name: column[:, 0] if rows == 1 else column for name, column in out.items()}
            missing = self._reader.read_columns(self._prefix, self._dtype, writer, env, number, out=flat, chunk_rows=rows)
            return {name: cells(column, count, rows) for name, column in out.items()}, missing
        values = self._reader.read_values(self._prefix, writer, env, number)
        missing = np.fromiter((value is None for value in values), np.bool_, count)
        there = [value for value in values if value is not None]
        called = self._name(writer[~missing], env[~missing], number[~missing])
        decoded = self._codec.decode_columns(there, name=called)
        blocks = {}
        for name, *_ in self.layout.columns:
            block = decoded[name]
            if len(there) < count:
                block = np.zeros((count, *block.shape[1:]), np.uint8)
                block[~missing] = decoded[name]
            blocks[name] = block.view(opaque(block.shape[2]))[:, :, 0] if block.shape[2] else cells(block, count, rows)
        return blocks, missing

    def _name(
        self, writer: npt.NDArray[np.uint32], env: npt.NDArray[np.uint32], number: npt.NDArray[np.uint64]
    ) -> Callable[[int], str]:
        return lambda k: f"table {self.table_id}, chunk {number[k]} of environment {env[k]} of writer {writer[k]}"

    def _scatter(
        self,
        batch: RunBatch,
        blocks: Blocks,
        chunks: _Chunks,
        repeats: _Repeats | None,
        place: Place,
        *,
        length: Ints,
        lead: Ints,
    ) -> None:
        """Copy rows of any items into place."""
        item = np.arange(place.start, place.stop) if isinstance(place, slice) else place
        cell = concatenated_ranges(item * batch.length + batch.left - lead, length)
        row = concatenated_ranges(((np.cumsum(chunks.counts) - chunks.counts) * self._chunk_rows + chunks.offset), length)
        chunk = row // self._chunk_rows
        within = row - chunk * self._chunk_rows
        if repeats is not None:
            chunk = repeats.chunk[chunk]
        for name, block in blocks.items():
            target = batch.cells(name).reshape(-1)
            step = max(1, COPY_BYTES // block.itemsize)
            for begin in range(0, len(cell), step):
                part = slice(begin, begin + step)
                target[cell[part]] = block[chunk[part], within[part]]


def read_joined(fetches: Sequence[RowFetch], items: Sequence[SampledItems], *, places: Sequence[Place]) -> FetchedRows:
    """Rows of the items of several shards of one table in one batch.

    Args:
        fetches, items: of each shard.
        places: where each shard's items stand in the batch. Where they follow one another, nothing is copied twice.
    """
    count = sum(len(part) for part in items)
    length, lead = np.empty(count, np.int64), np.empty(count, np.int64)
    where = [_as_slice(place) for place in places]
    for part, place in zip(items, where, strict=True):
        length[place], lead[place] = part.length, part.lead
    first = fetches[0]
    batch = RunBatch(first.layout, length=length, lead=lead)
    for fetch, part, place in zip(fetches, items, where, strict=True):
        fetch.read_into(batch, part, place)
    return batch.finished(what=f"table {first.table_id}")


def _as_slice(place: Place) -> Place:
    if isinstance(place, slice) or not len(place):
        return place
    start, stop = int(place[0]), int(place[-1]) + 1
    return slice(start, stop) if stop - start == len(place) and bool((np.diff(place) == 1).all()) else place


def _copy_alike(batch: RunBatch, blocks: Blocks, place: slice, *, offset: int, start: int, length: int) -> None:
    """Copy rows of items that all have `length` rows from row `offset` of their first chunk on, to the columns from `start` on."""
    for name, block in blocks.items():
        count, rows = place.stop - place.start, block.shape[1]
        to = batch.cells(name)[place]
        if rows == 1:
            to[:, start : start + length] = block[:, 0].reshape(count, -1)
            continue
        chunks = block.reshape(count, -1, rows)
        for chunk in range(chunks.shape[1]):
            begin = chunk * rows - offset  # of the chunk's first row, in rows of the item
            took, until = max(begin, 0), min(begin + rows, length)
            to[:, start + took : start + until] = chunks[:, chunk, took - begin : until - begin]
