"""Table index: admission, eviction, keys, sampling limits, live change."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError, SchemaMismatch, TableError
from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.coverage import capture_coverage
from rollstream.replay.group import TableGroup
from rollstream.replay.item_keys import make_keys
from rollstream.replay.limiter_spec import MinSize, SampleToInsertRatio
from rollstream.replay.log import DeleteEntry, InsertEntry, UpdateEntry
from rollstream.replay.selector_spec import Fifo, Prioritized, Uniform
from rollstream.replay.spec import TableSpec
from rollstream.replay.table import Table

ROWS = [["observation", "<f4", [4]], ["reward", "<f4", []]]


def make_table(**changes: Any) -> TableGroup:
    return TableGroup(TableSpec(**{"name": "replay", "max_items": 100, "rows": ROWS, **changes}), seed=1)


class OneEnvironment:
    """Entries of a writer with one environment whose items are pairs of consecutive rows."""

    def __init__(self, writer: int = 1) -> None:
        self.writer, self.sequence, self.row = writer, 0, 0

    def entry(
        self,
        items: int,
        *,
        priority: list[float] | None = None,
        key: list[int] | None = None,
        version: int = 0,
        episodes: tuple[int, ...] = (),
    ) -> InsertEntry:
        self.sequence += 1
        first, self.row = self.row, self.row + items
        return InsertEntry(
            writer=self.writer,
            sequence=self.sequence,
            keep=np.array([self.row], np.uint64),
            end=np.array([self.row + 1], np.uint64),
            start=np.arange(first, self.row, dtype=np.uint64),
            env=np.zeros(items, np.uint32),
            length=np.full(items, 2, np.uint32),
            version=np.full(items, version, np.uint32),
            episode_env=np.zeros(len(episodes), np.uint32),
            episode_start=np.array(episodes, np.uint64),
            first_ordinal=first,
            priority=None if priority is None else np.array(priority, np.float32),
            key=None if key is None else np.array(key, np.uint64),
        )


def insert(group: TableGroup, entry: InsertEntry) -> int:
    assert group.begin(entry)
    return group.admit()


def keys_in(table: Table) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return table.items.key[table.items.live()]


def starts(group: TableGroup) -> list[int]:
    return group.primary.start_rows(group.primary.items.live()).tolist()


def keys_of(group: TableGroup) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return group.primary.items.key[group.primary.items.live()]


def test_a_full_table_drops_the_oldest_and_frees_their_rows() -> None:
    group, writer = make_table(max_items=10), OneEnvironment()
    for _ in range(4):
        insert(group, writer.entry(4))
    assert starts(group) == list(range(6, 16))
    assert sorted(group.take_garbage().chunk_no.tolist()) == list(range(6))
    assert group.rows.references.held == 11  # ten items over eleven rows


def test_an_entry_larger_than_the_table_leaves_its_newest_items() -> None:
    group, writer = make_table(max_items=10), OneEnvironment()
    assert insert(group, writer.entry(35)) == 35
    assert starts(group) == list(range(25, 35))
    assert sorted(group.take_garbage().chunk_no.tolist()) == list(range(25))


def test_an_entry_that_arrives_twice_is_inserted_once() -> None:
    group, writer = make_table(), OneEnvironment()
    entry = writer.entry(3)
    insert(group, entry)
    assert not group.begin(entry)
    assert group.primary.size == 3
    assert group.rows.counters["entries_repeated"] == 1


def test_rows_that_a_later_item_will_need_are_not_freed() -> None:
    group, writer, other = make_table(max_items=3), OneEnvironment(1), OneEnvironment(2)
    insert(group, writer.entry(3))  # rows 0..3, row 3 is the start of the next item
    insert(group, other.entry(3))  # evicts all items of the first writer
    assert sorted(group.take_garbage().chunk_no.tolist()) == [0, 1, 2]
    insert(group, writer.entry(3))
    assert group.rows.counters["items_without_rows"] == 0
    group.forget_writer(1)
    group.forget_writer(2)
    insert(group, OneEnvironment(3).entry(3))
    group.forget_writer(3)
    assert group.rows.references.held == 4


def test_items_over_released_rows_are_refused_and_counted() -> None:
    group, writer = make_table(), OneEnvironment()
    insert(group, writer.entry(5))
    writer.row = 2
    entry = writer.entry(6)
    insert(group, entry)
    assert group.rows.counters["items_without_rows"] == 3
    assert starts(group) == [0, 1, 2, 3, 4, 5, 6, 7]


def test_an_entry_that_goes_back_is_refused_whole() -> None:
    group, writer = make_table(), OneEnvironment()
    insert(group, writer.entry(5))
    writer.row = 0
    assert not group.begin(writer.entry(2))
    assert group.rows.counters["entries_refused"] == 1


def test_the_limiter_admits_part_of_an_entry() -> None:
    group = make_table(limiter=SampleToInsertRatio(samples_per_insert=1, min_items=5, tolerance_items=4))
    writer = OneEnvironment()
    assert insert(group, writer.entry(20)) == 9
    assert group.admitting is not None
    with pytest.raises(TableError, match="begin: the previous entry is not wholly admitted"):
        group.begin(writer.entry(1))
    group.primary.sample(4)
    assert group.admit() == 4
    assert group.admitted == {"replay": 13}


def test_recovery_admits_what_was_admitted_before_whatever_the_limiter_says() -> None:
    group = make_table(limiter=SampleToInsertRatio(samples_per_insert=1, min_items=5, tolerance_items=4))
    assert group.begin(OneEnvironment().entry(20))
    assert group.admit(at_least=15) == 15


def test_a_random_remover_removes_the_same_items_however_the_limiter_cuts_the_entry() -> None:
    def run(cuts: list[int]) -> list[int]:
        limiter = SampleToInsertRatio(samples_per_insert=1, min_items=5, tolerance_items=40)
        group, writer = make_table(max_items=30, remover=Uniform(), limiter=limiter), OneEnvironment()
        for _ in range(4):
            assert group.begin(writer.entry(20))
            for cut in cuts:
                group.primary.limiter.sampled = (
                    group.primary.limiter.inserted + cut - 46 if group.primary.limiter.inserted > 45 else 0
                )
                group.admit()
            group.primary.limiter.sampled = group.primary.limiter.inserted
            group.admit()
        return starts(group)

    assert run([3, 7, 1]) == run([])


def test_new_items_get_the_highest_priority_so_far() -> None:
    group, writer = make_table(sampler=Prioritized()), OneEnvironment()
    insert(group, writer.entry(2))
    assert group.primary.items.priority[:2].tolist() == [1.0, 1.0]
    insert(group, writer.entry(2, priority=[7.0, 0.5]))
    insert(group, writer.entry(1))
    assert group.primary.items.priority[:5].tolist() == [1.0, 1.0, 7.0, 0.5, 7.0]


def test_stale_and_foreign_keys_are_ignored_and_counted() -> None:
    group, writer = make_table(max_items=4), OneEnvironment()
    insert(group, writer.entry(4))
    old = keys_of(group)
    insert(group, writer.entry(3))
    keys = np.concatenate([old, np.array([1 << 55, 1 << 56], np.uint64)])
    group.change(UpdateEntry(keys=keys, priority=np.full(6, 9.0, np.float32)))
    assert group.primary.counters["keys_stale"] == 5
    assert group.primary.items.priority[group.primary.items.live()].tolist() == [9.0, 1.0, 1.0, 1.0]


def test_deleting_by_key_frees_rows() -> None:
    group, writer = make_table(), OneEnvironment()
    insert(group, writer.entry(4))
    keys = keys_of(group)
    group.delete(DeleteEntry(keys=np.concatenate([keys[:2], keys[:1]])))
    assert starts(group) == [2, 3]
    assert sorted(group.take_garbage().chunk_no.tolist()) == [0, 1]


@pytest.mark.parametrize("sampler", [Uniform(), Fifo(), Prioritized(exponent=1.0)])
def test_an_item_goes_once_it_was_sampled_as_often_as_allowed(sampler: Uniform | Fifo | Prioritized) -> None:
    group, writer = make_table(sampler=sampler, max_times_sampled=2), OneEnvironment()
    insert(group, writer.entry(50))
    sampled = np.concatenate([group.primary.sample(count).start for count in (30, 30, 40)])
    assert np.bincount(sampled.astype(int), minlength=50).tolist() == [2] * 50
    assert group.primary.size == 0
    assert not group.primary.can_sample(1)


def test_a_queue_gives_items_in_order() -> None:
    group, writer = make_table(sampler=Fifo(), max_times_sampled=1), OneEnvironment()
    insert(group, writer.entry(10))
    assert group.primary.sample(4).start.tolist() == [0, 1, 2, 3]
    assert group.primary.sample(6).start.tolist() == [4, 5, 6, 7, 8, 9]


def test_sampling_before_min_items_says_what_it_waits_for() -> None:
    group = make_table(limiter=MinSize(min_items=100))
    insert(group, OneEnvironment().entry(64))
    with pytest.raises(TableError, match="sample of 32 items is not possible now: waiting for min_items 100, have 64"):
        group.primary.sample(32)


def test_shrinking_evicts_by_the_remover_and_growing_makes_room() -> None:
    group, writer = make_table(max_items=10), OneEnvironment()
    insert(group, writer.entry(10))
    group.primary.apply(group.primary.spec.model_copy(update={"max_items": 4, "sampler": Prioritized()}))
    assert starts(group) == [6, 7, 8, 9]
    group.primary.apply(group.primary.spec.model_copy(update={"max_items": 200}))
    insert(group, writer.entry(150))
    assert group.primary.size == 154
    assert group.primary.sample(10).table_items == 154


def test_rows_and_chunks_of_a_living_table_cannot_change() -> None:
    group = make_table()
    with pytest.raises(SchemaMismatch, match=r"row columns differ: the table has reward <f4\[\] where the change has no column"):
        group.primary.apply(make_table(rows=ROWS[:1]).primary.spec)
    with pytest.raises(TableError, match="chunk_rows cannot change on a living table: 1 to 2"):
        group.primary.apply(make_table(chunk_rows=2).primary.spec)


def test_an_item_with_a_key_that_is_there_only_changes_its_priority() -> None:
    group, writer = make_table(), OneEnvironment()
    insert(group, writer.entry(2))
    known = keys_of(group).tolist()
    insert(group, writer.entry(3, key=[known[0], 0, 77], priority=[5.0, 2.0, float("nan")]))
    assert group.primary.size == 4
    assert group.primary.counters["items_updated"] == 1
    assert group.primary.limiter.inserted == 4
    items, found = group.primary.get(np.array([known[0], 77, 78], np.uint64))
    assert found.tolist() == [True, True, False]
    assert items.priority.tolist() == [5.0, 5.0]


def test_a_key_that_comes_twice_in_an_entry_is_one_item() -> None:
    group = make_table()
    insert(group, OneEnvironment().entry(3, key=[9, 9, 9], priority=[1.0, 2.0, 3.0]))
    assert keys_of(group).tolist() == [9]
    assert starts(group) == [0]


def test_keys_are_those_that_the_writer_reckons() -> None:
    group = TableGroup(TableSpec(name="replay", max_items=10, rows=ROWS), shard=3)  # type: ignore[arg-type]
    insert(group, OneEnvironment(writer=5).entry(2))
    assert keys_of(group).tolist() == make_keys(3, 5, 0, 2).tolist()


def test_items_that_lag_too_far_are_kept_but_not_sampled() -> None:
    group, writer = make_table(max_lag_versions=2), OneEnvironment()
    insert(group, writer.entry(4, version=1))
    insert(group, writer.entry(4, version=3))
    assert set(group.primary.sample(200).start.tolist()) == set(range(8))
    insert(group, writer.entry(1, version=4))
    sampled = group.primary.sample(200)
    assert set(sampled.start.tolist()) == {4, 5, 6, 7, 8}
    assert sampled.probability[0] == 1 / 5
    assert group.primary.size == 9
    group.primary.see_version(9)
    assert not group.primary.can_sample(1)
    with pytest.raises(TableError, match="all 9 items lag more than max_lag_versions 2 behind version 9"):
        group.primary.sample(1)
    group.primary.delete(keys_of(group)[:9])
    assert group.primary.size == 0


def test_episodes_are_counted_until_their_last_item_is_gone() -> None:
    group, writer = make_table(max_items=4), OneEnvironment()
    insert(group, writer.entry(4))
    insert(group, writer.entry(4, episodes=(5, 7)))
    assert group.rows.runs.begun == 3
    assert group.rows.runs.alive == 3  # rows 4, 5..6, 7..: items start at 4, 5, 6, 7
    insert(group, writer.entry(4))
    assert (group.rows.runs.alive, group.rows.runs.deleted) == (1, 2)


def test_two_tables_share_rows_which_live_as_long_as_either_needs_them() -> None:
    group, writer = make_table(max_items=2), OneEnvironment()
    group.attach(TableSpec(name="long", max_items=6, rows=ROWS, rows_of="replay"))  # type: ignore[arg-type]
    both = dataclasses.replace(writer.entry(8), tables=("replay", "long"), table=np.array([0, 1] * 4, np.uint8))
    insert(group, both)
    long = group.tables["long"]
    assert starts(group) == [4, 6]
    assert long.start_rows(long.items.live()).tolist() == [1, 3, 5, 7]
    assert sorted(group.take_garbage().chunk_no.tolist()) == [0]
    long.delete(keys_in(long)[:2])
    assert sorted(group.take_garbage().chunk_no.tolist()) == [1, 2, 3]
    group.update(UpdateEntry(keys=keys_in(long)[:1], priority=np.array([9.0], np.float32)))
    assert long.items.priority[long.items.live()].tolist() == [9.0, 1.0]
    assert group.primary.counters["keys_stale"] == 0
    group.delete(DeleteEntry(keys=np.zeros(0, np.uint64), reset="long"))
    assert (long.size, long.counters["resets"]) == (0, 1)
    group.detach("long")
    assert starts(group) == [4, 6]


def test_an_entry_waits_for_the_slowest_of_its_tables() -> None:
    group, writer = make_table(), OneEnvironment()
    slow = SampleToInsertRatio(samples_per_insert=1, min_items=2, tolerance_items=1)
    group.attach(TableSpec(name="slow", max_items=6, rows=ROWS, rows_of="replay", limiter=slow))  # type: ignore[arg-type]
    entry = dataclasses.replace(writer.entry(8), tables=("replay", "slow"), table=np.array([0, 1] * 4, np.uint8))
    assert insert(group, entry) == 4 + 3
    assert group.admitting is not None
    assert group.admitted == {"replay": -1, "slow": 3}
    assert group.insert_waits_for().startswith("slow: writers are ahead of the ratio")
    group.tables["slow"].sample(1)
    assert group.admit() == 1
    assert group.admitting is None


def test_only_tables_with_the_same_rows_can_share_them() -> None:
    group = make_table()
    with pytest.raises(
        ConfigError, match="chunk_rows of table other must be that of table replay, whose rows it shares: 1, got 2"
    ):
        group.attach(TableSpec(name="other", max_items=6, rows=ROWS, rows_of="replay", chunk_rows=2))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="table replay shares rows with replay already"):
        group.attach(group.primary.spec)
    with pytest.raises(SchemaMismatch, match="row columns differ"):
        group.attach(TableSpec(name="other", max_items=6, rows=ROWS[:1], rows_of="replay"))  # type: ignore[arg-type]


def test_items_of_a_table_that_is_not_there_are_counted() -> None:
    group = make_table()
    insert(group, dataclasses.replace(OneEnvironment().entry(3), tables=("nope",)))
    assert group.rows.counters["items_without_table"] == 3


def test_a_table_stays_within_its_bytes() -> None:
    spec = TableSpec(name="replay", max_items=1000, rows=ROWS)  # type: ignore[arg-type]
    limit = 50 * spec.chunk_memory_bytes("")
    group, writer = make_table(max_items=1000, max_bytes=limit), OneEnvironment()
    for _ in range(30):
        insert(group, writer.entry(10))
        assert group.primary.held_bytes() <= limit + 10 * spec.chunk_memory_bytes("")
    assert 30 <= group.primary.size <= 50
    assert starts(group)[-1] == 299


def test_the_next_entry_waits_for_the_one_before() -> None:
    group, writer = make_table(), OneEnvironment()
    opened = group.rows.begin(writer.entry(2))
    assert opened is not None
    group.primary.offer(opened, np.arange(2), np.array([1, 2], np.uint64))
    with pytest.raises(TableError, match="offer: the previous entry is not wholly admitted"):
        group.primary.offer(opened, np.arange(2), np.array([3, 4], np.uint64))


def test_chunks_that_somebody_needs_are_told_from_others() -> None:
    group, writer = make_table(max_items=3), OneEnvironment()
    insert(group, writer.entry(8))  # items at rows 5, 6, 7; row 8 is pinned
    rows = np.arange(12, dtype=np.uint64)
    asked = ChunkAddresses(writer=np.full(12, 1, np.uint32), env=np.zeros(12, np.uint32), chunk_no=rows)
    assert capture_coverage(group).covers(asked).tolist() == [False] * 5 + [True] * 4 + [False] * 3
    group.forget_writer(1)
    assert capture_coverage(group).covers(asked).tolist() == [False] * 5 + [True] * 4 + [False] * 3
    other = dataclasses.replace(asked, writer=np.full(12, 2, np.uint32))
    assert not capture_coverage(group).covers(other).any()


@pytest.mark.parametrize("max_times_sampled", [0, 3])
def test_items_that_were_sampled_at_all_are_counted_once(max_times_sampled: int) -> None:
    group = make_table(max_times_sampled=max_times_sampled)
    insert(group, OneEnvironment().entry(20))
    seen: set[int] = set()
    for _ in range(6):
        seen |= set(group.primary.sample(5).keys.tolist())
        assert group.primary.counters["items_ever_sampled"] == len(seen)
