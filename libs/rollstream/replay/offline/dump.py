"""A table as a NumPy archive that anybody can read: every row once, in time order, and the items over them.

flags u1[R], version u4[R], every column [R, ...]
run_starts i8          rows that do not follow the row before them (an episode begins, or what was between has been evicted)
item_first_row, item_length, item_lead, item_priority, item_times_sampled, item_key    [M]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.replay.packed import unpack
from rollstream.replay.ranges import concatenated_ranges
from rollstream.replay.row_fetch import RowFetch
from rollstream.replay.samples import COLUMNS, SampledItems
from rollstream.replay.spec import TableSpec
from rollstream.replay.stream_ids import envs_of, stream_ids, writers_of
from rollstream.spaces import Flag
from rollstream.store import ChunkReader

__all__ = ["DumpedShard", "RowRuns", "dump_npz", "runs_of_items", "shard_of_index"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
FETCH_BYTES = 8 << 20
"""Row bytes that are fetched at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRuns:
    """Runs of consecutive rows of one environment: writer u4, env u4, start u8, length u4 of each [K]."""

    writer: npt.NDArray[np.uint32]
    env: npt.NDArray[np.uint32]
    start: Ints
    length: Ints

    def chunks(self, *, chunk_rows: int) -> RowRuns:
        """The same rows in order, one run for each chunk that they lie in."""
        first = self.start // chunk_rows
        count = (self.start + self.length - 1) // chunk_rows - first + 1
        number = concatenated_ranges(first, count)
        start = np.maximum(np.repeat(self.start, count), number * chunk_rows)
        end = np.minimum(np.repeat(self.start + self.length, count), (number + 1) * chunk_rows)
        return RowRuns(writer=np.repeat(self.writer, count), env=np.repeat(self.env, count), start=start, length=end - start)

    def part(self, which: slice) -> RowRuns:
        """Some of the runs."""
        return RowRuns(writer=self.writer[which], env=self.env[which], start=self.start[which], length=self.length[which])


FetchRows: TypeAlias = Callable[[RowRuns], npt.NDArray[np.void]]
"""Gives the rows of all runs, one after another; where a row is gone, one of zeros with the flag PAD."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedShard:
    """One shard's items, columns [M] by the names of an index, and the way to their rows."""

    items: Mapping[str, Array]
    fetch: FetchRows


def shard_of_index(index: bytes | bytearray, *, reader: ChunkReader, rows_id: str, shard: int, spec: TableSpec) -> DumpedShard:
    """A shard by the index that it gives (`GET .../snapshot`), with rows straight from Redis.

    Args:
        rows_id: id of the table that the rows belong to.
        spec: of the table that is dumped.
    """
    plain = spec.model_copy(update={"view": (), "stack": {}})  # what is stored, not what a sample shows
    fetch = RowFetch(reader, table_id=rows_id, shard=shard, spec=plain)
    at_once = max(1, FETCH_BYTES // spec.chunk_bytes)

    def fetched(runs: RowRuns) -> npt.NDArray[np.void]:
        rows = np.zeros(int(runs.length.sum()), spec.row_spec.dtype)
        chunks, place = runs.chunks(chunk_rows=spec.chunk_rows), 0
        for begin in range(0, len(chunks.start), at_once):
            read = fetch.read(_as_items(chunks.part(slice(begin, begin + at_once))))
            end = place + int(read.mask.sum())
            for name, column in read.rows.items():
                rows[name][place:end] = column[read.mask]
            gone = np.broadcast_to(read.missing[:, None], read.mask.shape)[read.mask]
            rows["flags"][place:end][gone] = Flag.PAD
            place = end
        return rows

    return DumpedShard(items=unpack(index, what=f"index of shard {shard}").arrays, fetch=fetched)


def _as_items(runs: RowRuns) -> SampledItems:
    count = len(runs.start)
    columns = {name: np.zeros(count, dtype) for name, dtype in COLUMNS}
    columns |= {"writer": runs.writer, "env": runs.env}
    columns |= {"start": runs.start.astype(np.uint64), "length": runs.length.astype(np.uint32)}
    return SampledItems(**columns, table_items=count)


def runs_of_items(writer: Array, env: Array, start: Array, length: Array) -> tuple[RowRuns, Ints]:
    """The runs that items [M] cover together, each row once; and for each item the position of its first row in them.

    >>> runs, first = runs_of_items(np.array([1, 1, 1]), np.array([0, 0, 0]), np.array([9, 0, 1]), np.array([2, 3, 3]))
    >>> runs.start.tolist(), runs.length.tolist(), first.tolist()
    ([0, 9], [4, 2], [4, 0, 1])
    """
    begin, end = start.astype(np.int64), start.astype(np.int64) + length.astype(np.int64)
    stream = stream_ids(writer, env)
    order = np.lexsort((begin, stream))
    begin, end, stream = begin[order], end[order], stream[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = stream[1:] != stream[:-1]
    number = np.cumsum(fresh) - 1
    span = int(end.max()) + 1 if len(end) else 1
    reached = np.maximum.accumulate(end + number * span) - number * span
    fresh[1:] |= begin[1:] > reached[:-1]
    run = np.cumsum(fresh) - 1
    heads = np.flatnonzero(fresh)
    lasts = np.append(heads[1:], len(order)) - 1 if len(heads) else heads
    lengths = reached[lasts] - begin[heads]
    offset = np.cumsum(lengths) - lengths
    first = np.empty(len(order), np.int64)
    first[order] = offset[run] + begin - begin[heads][run] if len(order) else 0
    runs = RowRuns(
        writer=writers_of(stream[heads]),
        env=envs_of(stream[heads]),
        start=begin[heads],
        length=lengths,
    )
    return runs, first


def dump_npz(path: Path | str, shards: Sequence[DumpedShard]) -> int:
    """Write a table's rows and items to `path`, in one step; returns the number of items.

    Items whose rows were evicted meanwhile are left out; such rows are flagged PAD.

    Raises:
        ConfigError: the file cannot be written.
    """
    rows: list[npt.NDArray[np.void]] = []
    starts: list[Ints] = []
    items: dict[str, list[Array]] = {}
    before = 0
    for shard in shards:
        told = shard.items
        runs, first = runs_of_items(told["writer"], told["env"], told["start"], told["length"])
        fetched = shard.fetch(runs)
        gone = np.append(0, np.cumsum((fetched["flags"] & Flag.PAD) != 0))
        whole_items = gone[first + told["length"].astype(np.int64)] == gone[first]
        starts.append(before + np.cumsum(runs.length) - runs.length)
        for name, array in {**told, "first_row": before + first}.items():
            items.setdefault(name, []).append(array[whole_items])
        rows.append(fetched)
        before += len(fetched)
    whole = np.concatenate(rows)
    arrays: dict[str, Array] = {name: whole[name] for name in whole.dtype.names or ()}
    arrays["run_starts"] = np.concatenate(starts)
    for name in ("first_row", "length", "lead", "priority", "times_sampled", "key"):
        if name in items:
            arrays[f"item_{name}"] = np.concatenate(items[name])
    _save(Path(path), arrays)
    return len(arrays["item_first_row"])


def _save(path: Path, arrays: Mapping[str, Array]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error
