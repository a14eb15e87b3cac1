"""Items of a table with their addresses: out of one table, into another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch, TableError
from rollstream.replay.group import TableGroup
from rollstream.replay.limiter_spec import SampleToInsertRatio
from rollstream.replay.log import InsertEntry
from rollstream.replay.packed import PackedArrays
from rollstream.replay.selector_spec import Prioritized
from rollstream.replay.spec import TableSpec
from rollstream.replay.table_state import import_items, table_state

ROWS = [["observation", "<f4", [4]], ["reward", "<f4", []]]


def make_group(**changes: Any) -> TableGroup:
    return TableGroup(TableSpec(**{"name": "replay", "max_items": 50, "rows": ROWS, **changes}), seed=1)


def entry(sequence: int, *, writer: int, items: int = 20) -> InsertEntry:
    first = (sequence - 1) * items
    return InsertEntry(
        writer=writer,
        sequence=sequence,
        keep=np.array([first + items], np.uint64),
        end=np.array([first + items + 2], np.uint64),
        start=np.arange(first, first + items, dtype=np.uint64),
        env=np.zeros(items, np.uint32),
        length=np.full(items, 3, np.uint32),
        version=np.full(items, 7, np.uint32),
        episode_env=np.zeros(1, np.uint32),
        episode_start=np.array([first + 3], np.uint64),
        first_ordinal=first,
        priority=np.arange(1, items + 1, dtype=np.float32),
        lead=np.arange(items, dtype=np.uint16) % 2,
    )


def filled(**changes: Any) -> TableGroup:
    group = make_group(**changes)
    for sequence in (1, 2):
        assert group.begin(entry(sequence, writer=4))
        group.admit()
    group.take_garbage()
    return group


def moved(state: PackedArrays, *, writer: int) -> PackedArrays:
    """As an importer does it: the rows lie under its own name now."""
    arrays = {**state.arrays, "writer": np.full(len(state.arrays["key"]), writer, np.uint32)}
    return PackedArrays(facts=state.facts, arrays=arrays)


@pytest.mark.parametrize("chunk_rows", [1, 4])
def test_imported_items_are_the_exported_ones_under_their_keys(chunk_rows: int) -> None:
    source = filled(sampler=Prioritized(), chunk_rows=chunk_rows)
    source.primary.sample(12)
    target = make_group(sampler=Prioritized(), chunk_rows=chunk_rows)
    assert target.begin(entry(1, writer=9))
    target.admit()
    assert import_items(target, "replay", moved(table_state(source.primary), writer=30)) == 40
    one, other = table_state(source.primary), table_state(target.primary)
    for name, array in one.arrays.items():
        if name != "writer":
            assert array.tolist() == other.arrays[name].tolist(), name
    assert set(other.arrays["writer"].tolist()) == {30}
    assert target.rows.runs.alive >= 3
    target.take_garbage()
    target.primary.remove_all()
    freed = target.take_garbage()
    assert sorted(set(zip(freed.writer.tolist(), freed.chunk_no.tolist(), strict=True))) == [
        (30, number) for number in range(-(-42 // chunk_rows))
    ]


def test_what_exceeds_the_new_limits_leaves_by_the_remover() -> None:
    target = make_group(max_items=10)
    assert import_items(target, "replay", moved(table_state(filled().primary), writer=30)) == 10
    assert target.primary.start_rows(target.primary.items.live()).tolist() == list(range(30, 40))
    assert target.begin(entry(1, writer=31))
    assert target.admit() == 20


def test_lost_priorities_start_at_the_highest_so_far() -> None:
    state = moved(table_state(filled().primary), writer=30)
    arrays = {name: array for name, array in state.arrays.items() if name != "priority"}
    target = make_group()
    import_items(target, "replay", PackedArrays(facts=state.facts, arrays=arrays))
    assert set(target.primary.items.priority[:40].tolist()) == {20.0}
    assert target.primary.counters["priorities_rebuilt"] == 40


def test_an_empty_state_empties_the_table() -> None:
    target = filled()
    assert import_items(target, "replay", table_state(make_group().primary)) == 0
    assert target.primary.size == 0


def test_what_cannot_be_imported_is_refused() -> None:
    state = table_state(filled().primary)
    twice = PackedArrays(facts=state.facts, arrays={**state.arrays, "key": np.zeros(40, np.uint64)})
    with pytest.raises(SchemaMismatch, match="restored items of table replay have 39 keys twice"):
        import_items(make_group(), "replay", twice)
    busy = make_group(limiter=SampleToInsertRatio(samples_per_insert=1, min_items=5, tolerance_items=2))
    assert busy.begin(entry(1, writer=4))
    busy.admit()
    with pytest.raises(TableError, match="table replay is restored between two entries"):
        import_items(busy, "replay", state)
