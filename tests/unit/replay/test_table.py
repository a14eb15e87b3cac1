"""Table index: admission, eviction, keys, sampling limits, live change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch, TableError
from rollstream.replay import Fifo, MinSize, Prioritized, SampleToInsertRatio, Table, TableSpec, Uniform
from rollstream.replay.log import DeleteEntry, InsertEntry, UpdateEntry

ROWS = [["observation", "<f4", [4]], ["reward", "<f4", []]]


def make_table(**changes: Any) -> Table:
    return Table(TableSpec(**{"name": "replay", "max_items": 100, "rows": ROWS, **changes}), seed=1)


class OneEnvironment:
    """Entries of a writer with one environment whose items are pairs of consecutive rows."""

    def __init__(self, writer: int = 1) -> None:
        self.writer, self.sequence, self.row = writer, 0, 0

    def entry(self, items: int, *, priority: list[float] | None = None) -> InsertEntry:
        self.sequence += 1
        first, self.row = self.row, self.row + items
        return InsertEntry(
            writer=self.writer,
            sequence=self.sequence,
            default_priority=priority is None,
            keep=np.array([self.row], np.uint64),
            end=np.array([self.row + 1], np.uint64),
            start=np.arange(first, self.row, dtype=np.uint64),
            env=np.zeros(items, np.uint32),
            length=np.full(items, 2, np.uint32),
            priority=np.array(priority or [0.0] * items, np.float32),
        )


def insert(table: Table, entry: InsertEntry) -> int:
    assert table.begin(entry)
    return table.admit()


def starts(table: Table) -> list[int]:
    return table.items.start[table.items.live()].tolist()


def test_a_full_table_drops_the_oldest_and_frees_their_rows() -> None:
    table, writer = make_table(max_items=10), OneEnvironment()
    for _ in range(4):
        insert(table, writer.entry(4))
    assert starts(table) == list(range(6, 16))
    assert sorted(table.take_garbage().chunk_no.tolist()) == list(range(6))
    assert table.references.held == 11  # ten items over eleven rows


def test_an_entry_larger_than_the_table_leaves_its_newest_items() -> None:
    table, writer = make_table(max_items=10), OneEnvironment()
    assert insert(table, writer.entry(35)) == 35
    assert starts(table) == list(range(25, 35))
    assert sorted(table.take_garbage().chunk_no.tolist()) == list(range(25))


def test_an_entry_that_arrives_twice_is_inserted_once() -> None:
    table, writer = make_table(), OneEnvironment()
    entry = writer.entry(3)
    insert(table, entry)
    assert not table.begin(entry)
    assert table.size == 3
    assert table.counters["entries_repeated"] == 1


def test_rows_that_a_later_item_will_need_are_not_freed() -> None:
    table, writer, other = make_table(max_items=3), OneEnvironment(1), OneEnvironment(2)
    insert(table, writer.entry(3))  # rows 0..3, row 3 is the start of the next item
    insert(table, other.entry(3))  # evicts all items of the first writer
    assert sorted(table.take_garbage().chunk_no.tolist()) == [0, 1, 2]
    insert(table, writer.entry(3))
    assert table.counters["items_without_rows"] == 0
    table.forget_writer(1)
    table.forget_writer(2)
    insert(table, OneEnvironment(3).entry(3))
    table.forget_writer(3)
    assert table.references.held == 4


def test_items_over_released_rows_are_refused_and_counted() -> None:
    table, writer = make_table(), OneEnvironment()
    insert(table, writer.entry(5))
    writer.row = 2
    entry = writer.entry(6)
    insert(table, entry)
    assert table.counters["items_without_rows"] == 3
    assert starts(table) == [0, 1, 2, 3, 4, 5, 6, 7]


def test_an_entry_that_goes_back_is_refused_whole() -> None:
    table, writer = make_table(), OneEnvironment()
    insert(table, writer.entry(5))
    writer.row = 0
    assert not table.begin(writer.entry(2))
    assert table.counters["entries_refused"] == 1


def test_the_limiter_admits_part_of_an_entry() -> None:
    table = make_table(limiter=SampleToInsertRatio(samples_per_insert=1, min_items=5, tolerance_items=4))
    writer = OneEnvironment()
    assert insert(table, writer.entry(20)) == 9
    assert table.admitting is not None
    with pytest.raises(TableError, match="begin: the previous entry is not wholly admitted"):
        table.begin(writer.entry(1))
    table.sample(4)
    assert table.admit() == 4
    assert table.admitted == 13


def test_recovery_admits_what_was_admitted_before_whatever_the_limiter_says() -> None:
    table = make_table(limiter=SampleToInsertRatio(samples_per_insert=1, min_items=5, tolerance_items=4))
    assert table.begin(OneEnvironment().entry(20))
    assert table.admit(at_least=15) == 15


def test_a_random_remover_removes_the_same_items_however_the_limiter_cuts_the_entry() -> None:
    def run(cuts: list[int]) -> list[int]:
        limiter = SampleToInsertRatio(samples_per_insert=1, min_items=5, tolerance_items=40)
        table, writer = make_table(max_items=30, remover=Uniform(), limiter=limiter), OneEnvironment()
        for _ in range(4):
            assert table.begin(writer.entry(20))
            for cut in cuts:
                table.limiter.sampled = table.limiter.inserted + cut - 46 if table.limiter.inserted > 45 else 0
                table.admit()
            table.limiter.sampled = table.limiter.inserted
            table.admit()
        return starts(table)

    assert run([3, 7, 1]) == run([])


def test_new_items_get_the_highest_priority_so_far() -> None:
    table, writer = make_table(sampler=Prioritized()), OneEnvironment()
    insert(table, writer.entry(2))
    assert table.items.priority[:2].tolist() == [1.0, 1.0]
    insert(table, writer.entry(2, priority=[7.0, 0.5]))
    insert(table, writer.entry(1))
    assert table.items.priority[:5].tolist() == [1.0, 1.0, 7.0, 0.5, 7.0]


def test_stale_and_foreign_keys_are_ignored_and_counted() -> None:
    table, writer = make_table(max_items=4), OneEnvironment()
    insert(table, writer.entry(4))
    old = table.items.keys(table.items.live())
    insert(table, writer.entry(3))
    keys = np.concatenate([old, np.array([1 << 25, 1 << 56], np.uint64)])
    table.update(UpdateEntry(keys=keys, priority=np.full(6, 9.0, np.float32)))
    assert table.counters["keys_stale"] == 5
    assert table.items.priority[table.items.live()].tolist() == [9.0, 1.0, 1.0, 1.0]


def test_deleting_by_key_frees_rows() -> None:
    table, writer = make_table(), OneEnvironment()
    insert(table, writer.entry(4))
    keys = table.items.keys(table.items.live())
    table.delete(DeleteEntry(keys=np.concatenate([keys[:2], keys[:1]])))
    assert starts(table) == [2, 3]
    assert sorted(table.take_garbage().chunk_no.tolist()) == [0, 1]


@pytest.mark.parametrize("sampler", [Uniform(), Fifo(), Prioritized(exponent=1.0)])
def test_an_item_goes_once_it_was_sampled_as_often_as_allowed(sampler: Uniform | Fifo | Prioritized) -> None:
    table, writer = make_table(sampler=sampler, max_times_sampled=2), OneEnvironment()
    insert(table, writer.entry(50))
    sampled = np.concatenate([table.sample(count).start for count in (30, 30, 40)])
    assert np.bincount(sampled.astype(int), minlength=50).tolist() == [2] * 50
    assert table.size == 0
    assert not table.can_sample(1)


def test_a_queue_gives_items_in_order() -> None:
    table, writer = make_table(sampler=Fifo(), max_times_sampled=1), OneEnvironment()
    insert(table, writer.entry(10))
    assert table.sample(4).start.tolist() == [0, 1, 2, 3]
    assert table.sample(6).start.tolist() == [4, 5, 6, 7, 8, 9]


def test_sampling_before_min_items_says_what_it_waits_for() -> None:
    table = make_table(limiter=MinSize(min_items=100))
    insert(table, OneEnvironment().entry(64))
    with pytest.raises(TableError, match="sample of 32 items is not possible now: waiting for min_items 100, have 64"):
        table.sample(32)


def test_shrinking_evicts_by_the_remover_and_growing_makes_room() -> None:
    table, writer = make_table(max_items=10), OneEnvironment()
    insert(table, writer.entry(10))
    table.apply(table.spec.model_copy(update={"max_items": 4, "sampler": Prioritized()}))
    assert starts(table) == [6, 7, 8, 9]
    table.apply(table.spec.model_copy(update={"max_items": 200}))
    insert(table, writer.entry(150))
    assert table.size == 154
    assert table.sample(10).table_items == 154


def test_rows_and_chunks_of_a_living_table_cannot_change() -> None:
    table = make_table()
    with pytest.raises(SchemaMismatch, match=r"row columns differ: the table has reward <f4\[\] where the change has no column"):
        table.apply(make_table(rows=ROWS[:1]).spec)
    with pytest.raises(TableError, match="chunk_rows cannot change on a living table: 1 to 2"):
        table.apply(make_table(chunk_rows=2).spec)
