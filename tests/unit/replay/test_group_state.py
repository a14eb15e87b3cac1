"""A group's snapshot: the same table comes back, whatever state it was in."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from rollstream.errors import TableError
from rollstream.replay.group import TableGroup
from rollstream.replay.group_state import capture, load_snapshot
from rollstream.replay.limiter_spec import SampleToInsertRatio
from rollstream.replay.log import InsertEntry, UpdateEntry
from rollstream.replay.packed import PackedArrays, pack, unpack
from rollstream.replay.selector_spec import Fifo, MaxHeap, Mixture, Prioritized, Recency, Uniform, WithoutReplacement
from rollstream.replay.spec import TableSpec

ROWS = [["observation", "<f4", [4]], ["reward", "<f4", []]]


def make_group(**changes: Any) -> TableGroup:
    return TableGroup(TableSpec(**{"name": "replay", "max_items": 50, "rows": ROWS, **changes}), seed=1)


def entry(sequence: int, *, writer: int = 1, items: int = 20, environments: int = 2) -> InsertEntry:
    """`items` items of three rows in each environment, over chunks that overlap."""
    first = (sequence - 1) * items
    start = np.tile(np.arange(first, first + items, dtype=np.uint64), environments)
    return InsertEntry(
        writer=writer,
        sequence=sequence,
        keep=np.full(environments, first + items, np.uint64),
        end=np.full(environments, first + items + 2, np.uint64),
        start=start,
        env=np.repeat(np.arange(environments, dtype=np.uint32), items),
        length=np.full(len(start), 3, np.uint32),
        version=np.full(len(start), sequence, np.uint32),
        episode_env=np.arange(environments, dtype=np.uint32) if sequence == 2 else np.zeros(0, np.uint32),
        episode_start=np.full(environments, first + 5, np.uint64) if sequence == 2 else np.zeros(0, np.uint64),
        first_ordinal=first * environments,
    )


def filled(**changes: Any) -> TableGroup:
    group = make_group(**changes)
    for sequence in (1, 2, 3):
        for writer in (1, 2):
            assert group.begin(entry(sequence, writer=writer))
            group.admit()
    group.take_garbage()
    return group


def copy_of(group: TableGroup, spec: TableSpec | None = None) -> TableGroup:
    state = capture(group).packed()
    copied = TableGroup(spec or group.primary.spec, seed=99)
    load_snapshot(copied, unpack(pack(state.facts, state.arrays), what="state"))
    return copied


def assert_equal_states(left: TableGroup, right: TableGroup) -> None:
    one, other = capture(left).packed(), capture(right).packed()
    assert one.facts == other.facts
    assert {name: array.tolist() for name, array in one.arrays.items()} == {
        name: array.tolist() for name, array in other.arrays.items()
    }


SELECTORS = [
    Uniform(),
    Prioritized(),
    Fifo(),
    MaxHeap(),
    WithoutReplacement(),
    Recency(half_life=20.0),
    Mixture(parts=((Uniform(), 1.0), (Prioritized(), 2.0))),
]


@pytest.mark.parametrize("chunk_rows", [1, 4])
@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: selector.kind)
def test_a_copy_goes_on_exactly_like_the_original(chunk_rows: int, selector: Any) -> None:
    group = filled(sampler=selector, remover=selector, chunk_rows=chunk_rows)
    group.primary.sample(10)
    group.update(UpdateEntry(keys=group.primary.sample(10).keys, priority=np.arange(10, dtype=np.float32)))
    copied = copy_of(group)
    assert_equal_states(group, copied)
    for one in (group, copied):
        for sequence in (4, 5):
            assert one.begin(entry(sequence))
            one.admit()
    assert group.primary.sample(20).keys.tolist() == copied.primary.sample(20).keys.tolist()
    garbage, copied_garbage = group.take_garbage(), copied.take_garbage()
    assert sorted(zip(garbage.writer, garbage.env, garbage.chunk_no, strict=True)) == sorted(
        zip(copied_garbage.writer, copied_garbage.env, copied_garbage.chunk_no, strict=True)
    )
    assert group.rows.runs.alive == copied.rows.runs.alive
    assert group.rows.runs.deleted == copied.rows.runs.deleted


def test_tables_that_share_rows_come_back_together() -> None:
    group = make_group()
    group.attach(TableSpec(name="few", max_items=7, rows=ROWS, rows_of="replay"))  # type: ignore[arg-type]
    table = np.tile(np.array([0, 1], np.uint8), 20)
    for sequence in (1, 2):
        both = dataclasses.replace(entry(sequence), tables=("replay", "few"), table=table)
        assert group.begin(both)
        group.admit()
    group.take_garbage()
    copied = copy_of(group)
    assert_equal_states(group, copied)
    assert copied.tables["few"].size == 7
    for one in (group, copied):
        one.primary.remove_all()
    assert len(group.take_garbage()) == len(copied.take_garbage()) > 0


def test_sizes_of_encoded_chunks_come_back_as_a_sum() -> None:
    group = make_group()
    sizes = np.full(44, 100, np.uint32)
    assert group.begin(dataclasses.replace(entry(1), chunk_bytes=sizes))
    group.admit()
    assert group.rows.references.stored_bytes == 4400
    copied = copy_of(group)
    assert copied.rows.references.stored_bytes == 4400
    copied.primary.remove_all()
    assert copied.rows.references.stored_bytes == 400  # rows that the writer may still use


def test_an_entry_with_too_few_sizes_is_refused() -> None:
    group = make_group()
    assert not group.begin(dataclasses.replace(entry(1), chunk_bytes=np.full(3, 100, np.uint32)))
    assert group.rows.counters["entries_refused"] == 1


def test_an_empty_table_comes_back_empty() -> None:
    assert_equal_states(make_group(), copy_of(make_group()))


def test_a_smaller_table_keeps_what_its_remover_leaves_and_all_counters() -> None:
    group = filled()
    copied = copy_of(group, group.primary.spec.model_copy(update={"max_items": 10}))
    newest = group.primary.items.key[group.primary.items.live()][-10:]
    assert copied.primary.items.key[copied.primary.items.live()].tolist() == newest.tolist()
    assert copied.primary.limiter.inserted == group.primary.limiter.inserted
    assert len(copied.take_garbage()) > 0
    assert copied.begin(entry(4))
    assert copied.admit() == 40
    assert copied.primary.size == 10


def test_changed_use_limits_apply_to_restored_items() -> None:
    group = filled()
    group.primary.sample(30)
    used_up = int((group.primary.items.times_sampled >= 2).sum())
    assert used_up > 0
    copied = copy_of(group, group.primary.spec.model_copy(update={"max_times_sampled": 2}))
    assert copied.primary.size == group.primary.size - used_up


def test_lost_priorities_become_the_highest_so_far() -> None:
    group = filled(sampler=Prioritized())
    group.update(UpdateEntry(keys=group.primary.sample(5).keys, priority=np.full(5, 3.0, np.float32)))
    state = capture(group).packed()
    arrays = {name: array for name, array in state.arrays.items() if name != "0.priority"}
    copied = make_group(sampler=Prioritized())
    load_snapshot(copied, PackedArrays(facts=state.facts, arrays=arrays))
    assert set(copied.primary.items.priority[copied.primary.items.live()].tolist()) == {3.0}
    assert copied.primary.counters["priorities_rebuilt"] == 50


def test_emptying_a_table_keeps_rows_that_writers_still_need() -> None:
    group = filled()
    group.primary.remove_all()
    assert group.primary.size == 0
    assert group.rows.references.held == 2 * 2 * 2  # two writers, two environments, two open rows each
    assert group.begin(entry(4))
    assert group.admit() == 40


def test_states_are_taken_and_loaded_only_where_they_mean_something() -> None:
    group = make_group(limiter=SampleToInsertRatio(samples_per_insert=1, min_items=5, tolerance_items=2))
    assert group.begin(entry(1))
    group.admit()
    with pytest.raises(TableError, match="table state is taken between two entries; one is half admitted"):
        capture(group)
    with pytest.raises(TableError, match="a snapshot is loaded into an empty table; clear it first"):
        load_snapshot(group, capture(filled()).packed())
