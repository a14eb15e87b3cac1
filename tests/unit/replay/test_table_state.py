"""A table's state: the same table comes back, whatever state it was in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import TableError
from rollstream.replay import MinSize, Prioritized, SampleToInsertRatio, Table, TableSpec, Uniform
from rollstream.replay.log import InsertEntry, UpdateEntry
from rollstream.replay.packed import PackedArrays, pack, unpack
from rollstream.replay.table_state import clear, load_state, table_state

ROWS = [["observation", "<f4", [4]], ["reward", "<f4", []]]


def make_table(**changes: Any) -> Table:
    return Table(TableSpec(**{"name": "replay", "max_items": 50, "rows": ROWS, **changes}), seed=1)


def entry(sequence: int, *, writer: int = 1, items: int = 20, environments: int = 2) -> InsertEntry:
    """`items` items of three rows in each environment, over chunks that overlap."""
    first = (sequence - 1) * items
    start = np.tile(np.arange(first, first + items, dtype=np.uint64), environments)
    return InsertEntry(
        writer=writer,
        sequence=sequence,
        default_priority=True,
        keep=np.full(environments, first + items, np.uint64),
        end=np.full(environments, first + items + 2, np.uint64),
        start=start,
        env=np.repeat(np.arange(environments, dtype=np.uint32), items),
        length=np.full(len(start), 3, np.uint32),
        priority=np.zeros(len(start), np.float32),
    )


def filled(**changes: Any) -> Table:
    table = make_table(**changes)
    for sequence in (1, 2, 3):
        for writer in (1, 2):
            assert table.begin(entry(sequence, writer=writer))
            table.admit()
    table.take_garbage()
    return table


def copy_of(table: Table, spec: TableSpec | None = None) -> Table:
    state = table_state(table)
    copied = Table(spec or table.spec, seed=99)
    load_state(copied, unpack(pack(state.facts, state.arrays), what="state"))
    return copied


def assert_equal_states(left: Table, right: Table) -> None:
    one, other = table_state(left), table_state(right)
    assert one.facts == other.facts
    assert {name: array.tolist() for name, array in one.arrays.items()} == {
        name: array.tolist() for name, array in other.arrays.items()
    }


@pytest.mark.parametrize("chunk_rows", [1, 4])
@pytest.mark.parametrize("remover", [Uniform(), Prioritized()])
def test_a_copy_goes_on_exactly_like_the_original(chunk_rows: int, remover: Any) -> None:
    table = filled(sampler=Prioritized(), remover=remover, chunk_rows=chunk_rows)
    table.sample(10)
    table.update(UpdateEntry(keys=table.sample(10).keys, priority=np.arange(10, dtype=np.float32)))
    copied = copy_of(table)
    assert_equal_states(table, copied)
    for one in (table, copied):
        for sequence in (4, 5):
            assert one.begin(entry(sequence))
            one.admit()
    assert table.sample(20).keys.tolist() == copied.sample(20).keys.tolist()
    garbage, copied_garbage = table.take_garbage(), copied.take_garbage()
    assert sorted(zip(garbage.writer, garbage.env, garbage.chunk_no, strict=True)) == sorted(
        zip(copied_garbage.writer, copied_garbage.env, copied_garbage.chunk_no, strict=True)
    )
    assert_equal_states(table, copied)


def test_an_empty_table_comes_back_empty() -> None:
    assert_equal_states(make_table(), copy_of(make_table()))


def test_a_smaller_table_keeps_what_its_remover_leaves_and_all_counters() -> None:
    table = filled()
    copied = copy_of(table, table.spec.model_copy(update={"max_items": 10}))
    newest = table.items.number[table.items.live()][-10:]
    assert copied.items.number[copied.items.live()].tolist() == newest.tolist()
    assert copied.limiter.inserted == table.limiter.inserted
    assert len(copied.take_garbage()) > 0
    assert copied.begin(entry(4))
    assert copied.admit() == 40
    assert copied.size == 10


def test_changed_use_limits_apply_to_restored_items() -> None:
    table = filled()
    table.sample(30)
    used_up = int((table.items.times_sampled >= 2).sum())
    assert used_up > 0
    copied = copy_of(table, table.spec.model_copy(update={"max_times_sampled": 2}))
    assert copied.size == table.size - used_up


def test_lost_priorities_become_the_highest_so_far() -> None:
    table = filled(sampler=Prioritized())
    table.update(UpdateEntry(keys=table.sample(5).keys, priority=np.full(5, 3.0, np.float32)))
    state = table_state(table)
    arrays = {name: array for name, array in state.arrays.items() if name != "priority"}
    copied = make_table(sampler=Prioritized())
    load_state(copied, PackedArrays(facts=state.facts, arrays=arrays))
    assert set(copied.items.priority[copied.items.live()].tolist()) == {3.0}
    assert copied.counters["priorities_rebuilt"] == 50


def test_clearing_keeps_rows_that_writers_still_need() -> None:
    table = filled()
    clear(table)
    assert table.size == 0
    assert table.references.held == 2 * 2 * 2  # two writers, two environments, two open rows each
    assert table.begin(entry(4))
    assert table.admit() == 40


def test_states_are_taken_and_loaded_only_where_they_mean_something() -> None:
    table = make_table(limiter=SampleToInsertRatio(samples_per_insert=1, min_items=5, tolerance_items=2))
    assert table.begin(entry(1))
    table.admit()
    with pytest.raises(TableError, match="table state is taken between two entries; one is half admitted"):
        table_state(table)
    with pytest.raises(TableError, match="table is cleared between two entries"):
        clear(table)
    assert len(table_state(table, with_streams=False).arrays["number"]) == table.size
    with pytest.raises(TableError, match="table state is loaded into an empty table, this one holds"):
        load_state(filled(limiter=MinSize()), table_state(filled()))
