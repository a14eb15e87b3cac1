"""The items of one table with their addresses, for checkpoints and for moving them elsewhere, and back.

table_state(table) ─▶ arrays, oldest item first: key, number, writer, env, start, run_start, length, lead, priority, ...
import_items(group, name, state)     into a table whose rows of these items are in Redis already, under these addresses
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch, TableError
from rollstream.replay.group import TableGroup
from rollstream.replay.group_state import load_facts, table_facts
from rollstream.replay.items import RECORD
from rollstream.replay.packed import PackedArrays
from rollstream.replay.stream_ids import NUMBER_BITS, NUMBER_MASK, chunk_addresses, distinct, envs_of, stream_ids, writers_of
from rollstream.replay.table import Table

__all__ = ["ITEM_COLUMNS", "import_items", "table_state"]

Ints = npt.NDArray[np.int64]

ITEM_COLUMNS = (
    "key",
    "number",
    "writer",
    "env",
    "start",
    "run_start",
    "length",
    "lead",
    "priority",
    "version",
    "times_sampled",
)
COPIED = ("length", "lead", "priority", "version", "times_sampled")


def table_state(table: Table) -> PackedArrays:
    """All items with their addresses, and what `table_facts` tells; at any time."""
    items, runs = table.items, table.rows.runs
    live = items.live()
    run = items.run[live]
    arrays: dict[str, npt.NDArray[Any]] = {
        "key": items.key[live],
        "number": items.numbers(live),
        "writer": runs.writer[run],
        "env": runs.env[run],
        "start": table.start_rows(live),
        "run_start": runs.start[run],
    }
    arrays |= {name: getattr(items, name)[live] for name in COPIED}
    return PackedArrays(facts=table_facts(table), arrays=arrays)


def import_items(group: TableGroup, name: str, state: PackedArrays) -> int:
    """Put the items of `state` in the place of what the table holds; returns how many are in.

    What exceeds the table's limits leaves by its remover's rule. A missing priority column starts at the highest priority so far.
    Their rows must be addressed by writers that this row space does not know, as an importer's are.
    """
    table, arrays = group.tables[name], state.arrays
    if table.admitting:
        raise TableError(f"table {name} is restored between two entries; one is half admitted")
    keys = arrays["key"].astype(np.uint64)
    different = len(distinct(keys).values)
    if different != len(keys):
        raise SchemaMismatch(f"restored items of table {name} have {len(keys) - different} keys twice; export it again")
    table.remove_all()
    load_facts(table, state.facts)
    count = len(keys)
    items = table.items
    if count > items.capacity:
        items.grow(count)
    if not count:
        return 0
    records = np.zeros(count, RECORD)
    records["key"] = keys
    records["born"] = group.rows.row_clock & 0xFFFFFFFF
    for column in COPIED:
        if column in arrays:
            records[column] = arrays[column]
    if "priority" not in arrays:
        records["priority"] = table.max_priority
        table.counters["priorities_rebuilt"] += count
    slots = items.allocate(records)
    items.number[slots] = arrays["number"].astype(np.uint64).astype(np.uint32)
    items.next_number = max(int(state.facts["next_number"]), int(arrays["number"].max()) + 1)
    _give_runs(group, table, slots, arrays)
    _give_chunks(group, table, slots, stored_bytes=int(state.facts.get("stored_bytes", 0)))
    table.rebuild_selectors()
    table.fit()
    return table.size


def _give_runs(group: TableGroup, table: Table, slots: Ints, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Runs of the items, each once."""
    runs = group.rows.runs
    streams = distinct(stream_ids(arrays["writer"], arrays["env"]))
    found = distinct((streams.which << NUMBER_BITS) | arrays["run_start"].astype(np.int64))
    owner = streams.values[found.values >> NUMBER_BITS]
    places = runs.allocate(writer=writers_of(owner), env=envs_of(owner), start=found.values & NUMBER_MASK)
    run = places[found.which]
    table.items.run[slots] = run
    table.items.offset[slots] = arrays["start"].astype(np.int64) - arrays["run_start"].astype(np.int64)
    runs.hold(run)
    runs.release(places)


def _give_chunks(group: TableGroup, table: Table, slots: Ints, *, stored_bytes: int) -> None:
    """Places of the chunks that the items cover, in order of their addresses."""
    rows, chunk_rows = group.rows, group.rows.chunk_rows
    run, start = table.items.run[slots], table.start_rows(slots)
    low = start // chunk_rows
    lengths = (start + table.items.length[slots] - 1) // chunk_rows - low + 1
    found = chunk_addresses(stream_ids(rows.runs.writer[run], rows.runs.env[run]), low, lengths)
    chunks = distinct(found.address)
    count = len(chunks.values)
    sizes = np.full(count, stored_bytes // count, np.uint32) if stored_bytes else None
    places = rows.references.allocate(count, sizes=sizes)
    rows.references.link(places)
    starts = np.cumsum(lengths) - lengths
    table.items.first_place[slots] = places[chunks.which[starts]]
    rows.references.hold(places[chunks.which], np.ones(len(chunks.which), np.int64))
    rows.references.drop_first_hold(places)
