"""A table's state as arrays and facts, and a table from such a state.

The arrays hold the items (oldest first), the order of free slots and of random selectors, and, for each writer, how far its
environments were written; the facts are the counters, the limiter's numbers and the random generators. Chunk references are not
stored: they follow from items and writers. A table made from a state goes on exactly as the first would have.

A state is taken between two entries; what an entry half admitted would add is in the log and comes again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import TableError
from rollstream.replay.packed import PackedArrays
from rollstream.replay.ranges import concatenated_ranges
from rollstream.replay.streams import WriterStreams
from rollstream.replay.table import Table

__all__ = ["ITEM_COLUMNS", "clear", "load_state", "table_state"]

Ints = npt.NDArray[np.int64]

ITEM_COLUMNS = ("number", "writer", "env", "start", "length", "priority", "times_sampled")


def table_state(table: Table, *, with_streams: bool = True) -> PackedArrays:
    """Everything that `load_state` needs to make an equal table; without streams, only its items (at any time)."""
    if with_streams and table.admitting is not None:
        raise TableError("table state is taken between two entries; one is half admitted")
    live = table.items.live()
    arrays: dict[str, npt.NDArray[Any]] = {name: getattr(table.items, name)[live] for name in ITEM_COLUMNS}
    arrays["slot"] = live.astype(np.uint32)
    writers = sorted(table.streams) if with_streams else []
    streams = [table.streams[writer] for writer in writers]
    arrays["stream_writer"] = np.array(writers, np.uint32)
    arrays["stream_sequence"] = np.array([stream.sequence for stream in streams], np.uint64)
    arrays["stream_environments"] = np.array([len(stream.keep) for stream in streams], np.uint32)
    nothing = np.zeros(0, np.int64)
    arrays["stream_keep"] = np.concatenate([nothing, *(stream.keep for stream in streams)])
    arrays["stream_end"] = np.concatenate([nothing, *(stream.end for stream in streams)])
    if with_streams:
        arrays["free_slot"] = table.items.free_slots().astype(np.uint32)
        arrays |= {name: order.astype(np.uint32) for name, order in table.selector_orders().items()}
    facts = {
        "inserted": table.limiter.inserted,
        "sampled": table.limiter.sampled,
        "next_number": table.items.next_number,
        "max_priority": table.max_priority,
        "counters": dict(table.counters),
        "sampling_generator": table.sampling_generator.bit_generator.state,
        "removal_generator": table.removal_generator.bit_generator.state,
        "spec": table.spec.model_dump(mode="json"),
    }
    return PackedArrays(facts=facts, arrays=arrays)


def load_state(table: Table, state: PackedArrays) -> None:
    """Fill an empty table. Items keep their keys; those beyond `max_items` leave by the remover's rule.

    A missing priority column (lost, damaged) is made up for by the highest priority so far, and counted.
    """
    arrays, facts = state.arrays, state.facts
    if table.size or table.admitting is not None:
        raise TableError(f"table state is loaded into an empty table, this one holds {table.size} items; clear it first")
    _load_streams(table, arrays)
    _load_facts(table, facts)
    slots = arrays["slot"].astype(np.int64)
    items = table.items
    free = arrays["free_slot"].astype(np.int64) if "free_slot" in arrays else None
    used = slots if free is None else np.concatenate([slots, free])
    if len(used) and int(used.max()) >= items.capacity:
        items.grow(int(used.max()) + 1)
    items.occupy(slots, arrays["number"], free=free)
    for name in ITEM_COLUMNS:
        if name in arrays:
            getattr(items, name)[slots] = arrays[name]
    if "priority" not in arrays:
        items.priority[slots] = table.max_priority
        table.counters["priorities_rebuilt"] += len(slots)
    _rebuild_references(table, slots)
    table.rebuild_selectors({name: array.astype(np.int64) for name, array in arrays.items() if name.endswith("_order")})
    if table.size > table.spec.max_items:
        table.apply(table.spec)


def clear(table: Table) -> None:
    """Remove all items; writers keep their place, so that they can go on."""
    if table.admitting is not None:
        raise TableError("table is cleared between two entries; one is half admitted")
    table.remove_all()


def _load_streams(table: Table, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    if "stream_writer" not in arrays:
        return
    ends = np.cumsum(arrays["stream_environments"].astype(np.int64))
    for index, writer in enumerate(arrays["stream_writer"].tolist()):
        part = slice(int(ends[index]) - int(arrays["stream_environments"][index]), int(ends[index]))
        table.streams[writer] = WriterStreams(
            keep=arrays["stream_keep"][part].copy(),
            end=arrays["stream_end"][part].copy(),
            sequence=int(arrays["stream_sequence"][index]),
            pins=np.zeros(0, np.int64),
        )


def _load_facts(table: Table, facts: Mapping[str, Any]) -> None:
    table.limiter.inserted = int(facts["inserted"])
    table.limiter.sampled = int(facts["sampled"])
    table.items.next_number = max(table.items.next_number, int(facts["next_number"]))
    table.max_priority = float(facts["max_priority"])
    for name, count in facts["counters"].items():
        table.counters[name] = max(table.counters[name], count)
    table.sampling_generator.bit_generator.state = facts["sampling_generator"]
    table.removal_generator.bit_generator.state = facts["removal_generator"]


def _rebuild_references(table: Table, slots: Ints) -> None:
    """Number all chunks that items cover or writers pin, in order of their address, and count who holds each."""
    items, chunk_rows = table.items, table.spec.chunk_rows
    first = items.start[slots] // chunk_rows
    chunks = items.chunks(slots, chunk_rows=chunk_rows)
    writers = list(table.streams)
    stream = [_stream_ids(items.writer[slots], items.env[slots])]
    low, count = [first], [chunks]
    for writer in writers:
        streams = table.streams[writer]
        environments = np.arange(len(streams.keep), dtype=np.uint32)
        stream.append(_stream_ids(np.full(len(environments), writer, np.uint32), environments))
        low.append(streams.keep // chunk_rows)
        count.append(-(-streams.end // chunk_rows) - low[-1])
    lengths = np.concatenate(count)
    _, dense = np.unique(np.concatenate(stream), return_inverse=True)
    chunk_no = concatenated_ranges(np.concatenate(low), lengths)
    address = (np.repeat(dense, lengths).astype(np.uint64) << np.uint64(40)) | chunk_no.astype(np.uint64)
    _, places = np.unique(address, return_inverse=True)
    table.references.rebuild(places.astype(np.int64))
    starts = np.cumsum(lengths) - lengths
    items.first_place[slots] = places[starts[: len(slots)]]
    row = len(slots)
    for index, writer in enumerate(writers):
        pinned = int(count[index + 1].sum())
        begin = int(starts[row]) if pinned else 0
        table.streams[writer].pins = places[begin : begin + pinned].astype(np.int64)
        row += len(count[index + 1])


def _stream_ids(writer: npt.NDArray[np.uint32], env: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    return (writer.astype(np.uint64) << np.uint64(32)) | env.astype(np.uint64)
