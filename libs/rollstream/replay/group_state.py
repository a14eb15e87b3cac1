"""The state of a table group for a snapshot, and a group from such a state, which goes on exactly as the first would have.

    capture(group) ─▶ plain copies of all columns: milliseconds, in the thread that owns the group
        .packed() ─▶ put in order: any thread
    load_snapshot(group, packed)

Stored are the runs, how far each writer's environments were written, and for each table its items (oldest first), the order of
free slots and of selectors, the counters, and the random generators. Chunk references are not: they follow from items and
writers. A state is taken between two entries; what an entry half admitted would add is in the log and comes again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import TableError
from rollstream.replay.group import TableGroup
from rollstream.replay.items import LOW
from rollstream.replay.packed import PackedArrays
from rollstream.replay.spec import TableSpec
from rollstream.replay.stream_ids import chunk_addresses, stream_ids
from rollstream.replay.streams import WriterStreams
from rollstream.replay.table import Table

__all__ = ["CapturedState", "SnapshotRoom", "capture", "load_snapshot", "room_for"]

Ints = npt.NDArray[np.int64]
Arrays = Mapping[str, npt.NDArray[Any]]
SnapshotRoom: TypeAlias = dict[str, npt.NDArray[np.void]]
ITEM_COLUMNS = ("key", "number", "run", "offset", "length", "lead", "priority", "version", "born", "times_sampled")
RUN_COLUMNS = ("writer", "env", "start")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedState:
    """Copies of a group's columns at one moment; `tables` maps names to columns by slot."""

    facts: dict[str, Any]
    shared: dict[str, npt.NDArray[Any]]
    tables: dict[str, dict[str, npt.NDArray[Any]]]

    def packed(self) -> PackedArrays:
        """The state with items in order, ready to be stored."""
        arrays = dict(self.shared)
        for place, columns in enumerate(self.tables.values()):
            live = np.flatnonzero(columns["alive"])
            age = np.uint32(self.facts["tables"][place]["next_number"] & LOW) - columns["number"][live]
            live = live[np.argsort(age, kind="stable")[::-1]]
            for name in ITEM_COLUMNS:
                arrays[f"{place}.{name}"] = columns[name][live]
            arrays[f"{place}.slot"] = live.astype(np.uint32)
            for name in ("free_slot", "sampler_order", "remover_order"):
                if name in columns:
                    arrays[f"{place}.{name}"] = columns[name].astype(np.uint32)
        return PackedArrays(facts=self.facts, arrays=arrays)


def room_for(group: TableGroup) -> SnapshotRoom:
    """Memory that `capture` can fill. Getting memory from the system takes longer than the copy; this may be done in any thread."""
    return {name: table.items.room() for name, table in list(group.tables.items())}


def capture(group: TableGroup, room: SnapshotRoom | None = None) -> CapturedState:
    """Copy everything that `load_snapshot` needs to make an equal group; into `room`, where there is some."""
    if group.admitting is not None:
        raise TableError("table state is taken between two entries; one is half admitted")
    rows = group.rows
    writers = sorted(rows.streams)
    streams = [rows.streams[writer] for writer in writers]
    nothing = np.zeros(0, np.int64)
    shared: dict[str, npt.NDArray[Any]] = {
        "stream_writer": np.array(writers, np.uint32),
        "stream_sequence": np.array([stream.sequence for stream in streams], np.uint64),
        "stream_environments": np.array([len(stream.keep) for stream in streams], np.uint32),
        "stream_keep": np.concatenate([nothing, *(stream.keep for stream in streams)]),
        "stream_end": np.concatenate([nothing, *(stream.end for stream in streams)]),
        "stream_runs": np.array([len(stream.run_place) for stream in streams], np.uint32),
        "stream_run": np.concatenate([nothing, *(stream.run_place for stream in streams)]).astype(np.int32),
    }
    shared |= {f"run_{name}": getattr(rows.runs, name)[: rows.runs.high].copy() for name in RUN_COLUMNS}
    tables = {name: _columns(table, (room or {}).get(name)) for name, table in group.tables.items()}
    facts = {
        "row_clock": rows.row_clock,
        "newest_version": rows.newest_version,
        "runs_begun": rows.runs.begun,
        "stored_bytes": rows.references.stored_bytes,
        "counters": dict(rows.counters),
        "tables": [table_facts(table) for table in group.tables.values()],
    }
    return CapturedState(facts=facts, shared=shared, tables=tables)


def table_facts(table: Table) -> dict[str, Any]:
    """What a state says of a table besides its items."""
    return {
        "name": table.spec.name,
        "inserted": table.limiter.inserted,
        "sampled": table.limiter.sampled,
        "next_number": table.items.next_number,
        "max_priority": table.max_priority,
        "newest_version": table.newest_version,
        "counters": dict(table.counters),
        "sampling_generator": table.sampling_generator.bit_generator.state,
        "removal_generator": table.removal_generator.bit_generator.state,
        "sampler": table.sampler.facts(),
        "remover": table.remover.facts(),
        "spec": table.spec.model_dump(mode="json"),
    }


def load_facts(table: Table, facts: Mapping[str, Any]) -> None:
    """Counters, numbers and generators of a table, as `table_facts` gave them."""
    table.limiter.inserted = int(facts["inserted"])
    table.limiter.sampled = int(facts["sampled"])
    table.items.next_number = max(table.items.next_number, int(facts["next_number"]))
    table.max_priority = float(facts["max_priority"])
    table.newest_version = max(table.newest_version, int(facts["newest_version"]))
    for name, count in facts["counters"].items():
        table.counters[name] = max(table.counters[name], count)
    table.sampling_generator.bit_generator.state = facts["sampling_generator"]
    table.removal_generator.bit_generator.state = facts["removal_generator"]


def load_snapshot(group: TableGroup, state: PackedArrays) -> None:
    """Fill an empty group. Items keep their keys; those beyond the limits of the tables leave by their removers' rules.

    A missing priority column (lost, damaged) is made up for by the highest priority so far, and counted.
    """
    if any(table.size for table in group.tables.values()) or group.admitting is not None:
        raise TableError("a snapshot is loaded into an empty table; clear it first")
    _load_rows(group, state)
    parts = []
    for place, facts in enumerate(state.facts["tables"]):
        table = group.tables.get(facts["name"])
        if table is None:
            table = group.attach(TableSpec.model_validate(facts["spec"]))
        arrays = {name.partition(".")[2]: array for name, array in state.arrays.items() if name.startswith(f"{place}.")}
        parts.append((table, _load_items(table, facts, arrays)))
        group.rows.runs.hold(arrays["run"].astype(np.int64))
    _rebuild_references(group, parts, stored_bytes=int(state.facts["stored_bytes"]))
    group.rows.runs.settle()
    for place, (table, _) in enumerate(parts):
        facts = state.facts["tables"][place]
        orders = {name: state.arrays.get(f"{place}.{name}") for name in ("sampler_order", "remover_order")}
        known = {name: order.astype(np.int64) for name, order in orders.items() if order is not None}
        table.rebuild_selectors(known, facts={"sampler": facts["sampler"], "remover": facts["remover"]})
        table.fit()


def _columns(table: Table, room: npt.NDArray[np.void] | None) -> dict[str, npt.NDArray[Any]]:
    items = table.items
    records = items.copied(room)
    columns: dict[str, npt.NDArray[Any]] = {name: records[name] for name in ITEM_COLUMNS}
    columns |= {"alive": items.alive[: items.high].copy(), "free_slot": items.free_slots().copy()}
    return columns | {name: order.copy() for name, order in table.selector_orders().items()}


def _load_rows(group: TableGroup, state: PackedArrays) -> None:
    rows, arrays, facts = group.rows, state.arrays, state.facts
    rows.row_clock, rows.newest_version = int(facts["row_clock"]), int(facts["newest_version"])
    rows.counters.update(facts["counters"])
    rows.runs.load({name: arrays[f"run_{name}"] for name in RUN_COLUMNS}, begun=int(facts["runs_begun"]))
    ends = np.cumsum(arrays["stream_environments"].astype(np.int64))
    run_ends = np.cumsum(arrays["stream_runs"].astype(np.int64))
    for index, writer in enumerate(arrays["stream_writer"].tolist()):
        part = slice(int(ends[index]) - int(arrays["stream_environments"][index]), int(ends[index]))
        run_part = slice(int(run_ends[index]) - int(arrays["stream_runs"][index]), int(run_ends[index]))
        rows.streams[writer] = WriterStreams.restored(
            rows.runs,
            keep=arrays["stream_keep"][part].copy(),
            end=arrays["stream_end"][part].copy(),
            sequence=int(arrays["stream_sequence"][index]),
            run_place=arrays["stream_run"][run_part].astype(np.int64),
        )


def _load_items(table: Table, facts: Mapping[str, Any], arrays: Arrays) -> Ints:
    load_facts(table, facts)
    items, slots = table.items, arrays["slot"].astype(np.int64)
    free = arrays["free_slot"].astype(np.int64)
    used = np.concatenate([slots, free])
    if len(used) and int(used.max()) >= items.capacity:
        items.grow(int(used.max()) + 1)
    items.occupy(slots, arrays["key"], free=free)
    for name in ITEM_COLUMNS:
        if name in arrays:
            getattr(items, name)[slots] = arrays[name]
    if "priority" not in arrays:
        items.priority[slots] = table.max_priority
        table.counters["priorities_rebuilt"] += len(slots)
    return slots


def _rebuild_references(group: TableGroup, parts: list[tuple[Table, Ints]], *, stored_bytes: int) -> None:
    """Number all chunks that items cover or writers pin, in order of their address, and count who holds each."""
    rows, chunk_rows = group.rows, group.rows.chunk_rows
    stream, low, count = [], [], []
    for table, slots in parts:
        first, run = table.start_rows(slots), table.items.run[slots]
        stream.append(stream_ids(rows.runs.writer[run], rows.runs.env[run]))
        low.append(first // chunk_rows)
        count.append((first + table.items.length[slots] - 1) // chunk_rows - low[-1] + 1)
    writers = list(rows.streams)
    for writer in writers:
        streams = rows.streams[writer]
        environments = np.arange(len(streams.keep), dtype=np.uint32)
        stream.append(stream_ids(np.full(len(environments), writer, np.uint32), environments))
        low.append(streams.keep // chunk_rows)
        count.append(-(-streams.end // chunk_rows) - low[-1])
    lengths = np.concatenate(count)
    found = chunk_addresses(np.concatenate(stream), np.concatenate(low), lengths)
    _, places = np.unique(found.address, return_inverse=True)
    rows.references.rebuild(places.astype(np.int64), stored_bytes=stored_bytes)
    starts = np.cumsum(lengths) - lengths
    row = 0
    for table, slots in parts:
        if len(slots):
            table.items.first_place[slots] = places[starts[row : row + len(slots)]]
        row += len(slots)
    for index, writer in enumerate(writers):
        pinned = int(count[len(parts) + index].sum())
        begin = int(starts[row]) if pinned else 0
        rows.streams[writer].pins = places[begin : begin + pinned].astype(np.int64)
        row += len(count[len(parts) + index])
