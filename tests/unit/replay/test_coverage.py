"""Coverage: exactly the chunks that the index counts holders of are needed."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.coverage import capture_coverage
from rollstream.replay.group import TableGroup
from rollstream.replay.log import DeleteEntry, InsertEntry
from rollstream.replay.spec import TableSpec

ROWS = (("reward", "<f4", ()),)


def entry(writer: int, sequence: int, *, keep: list[int], end: list[int], items: list[tuple[int, int, int]]) -> InsertEntry:
    """Items are (environment, start, length)."""
    env, start, length = (np.array(column) for column in zip(*items, strict=True))
    first = sequence == 1
    return InsertEntry(
        writer=writer,
        sequence=sequence,
        keep=np.array(keep, np.uint64),
        end=np.array(end, np.uint64),
        start=start.astype(np.uint64),
        env=env.astype(np.uint32),
        length=length.astype(np.uint32),
        version=np.ones(len(items), np.uint32),
        episode_env=np.arange(len(keep) if first else 0, dtype=np.uint32),
        episode_start=np.zeros(len(keep) if first else 0, np.uint64),
        first_ordinal=100 * sequence,
    )


def addresses(*chunks: tuple[int, int, int]) -> ChunkAddresses:
    writer, env, number = zip(*chunks, strict=True)
    return ChunkAddresses(writer=np.array(writer, np.uint32), env=np.array(env, np.uint32), chunk_no=np.array(number, np.uint64))


@pytest.mark.parametrize("chunk_rows", [1, 4])
def test_chunks_of_items_and_of_open_rows_are_needed_and_no_others(chunk_rows: int) -> None:
    group = TableGroup(TableSpec(name="replay", max_items=100, rows=ROWS, chunk_rows=chunk_rows))
    for one in (
        entry(7, 1, keep=[12, 20], end=[16, 20], items=[(0, 0, 4), (0, 2, 6), (1, 8, 4)]),
        entry(9, 1, keep=[8], end=[8], items=[(0, 4, 2)]),
    ):
        assert group.begin(one)
        group.admit()
    held = {
        (writer, env, row // chunk_rows)
        for writer, env, first, last in ((7, 0, 0, 8), (7, 1, 8, 12), (9, 0, 4, 6), (7, 0, 12, 16))
        for row in range(first, last)
    }
    assert group.rows.references.held == len(held)
    every = [(writer, env, number) for writer in (6, 7, 8, 9) for env in (0, 1, 2) for number in range(24)]
    needed = capture_coverage(group).covers(addresses(*every))
    assert {chunk for chunk, wanted in zip(every, needed.tolist(), strict=True) if wanted} == held


def test_rows_that_another_table_covers_are_needed_and_deleted_ones_are_not() -> None:
    group = TableGroup(TableSpec(name="replay", max_items=100, rows=ROWS))
    group.attach(TableSpec(name="recent", max_items=100, rows=ROWS, rows_of="replay"))
    first = entry(7, 1, keep=[4], end=[4], items=[(0, 0, 1), (0, 1, 1), (0, 1, 2)])
    assert group.begin(
        InsertEntry(
            **{name: getattr(first, name) for name in first.__slots__ if name not in ("table", "tables")},
            tables=("replay", "recent"),
            table=np.array([0, 0, 1], np.uint8),
        )
    )
    group.admit()
    group.delete(DeleteEntry(keys=group.primary.items.key[group.primary.items.live()]))
    coverage = capture_coverage(group)
    chunks = addresses((7, 0, 0), (7, 0, 1), (7, 0, 2), (7, 0, 3), (7, 0, 4))
    assert coverage.covers(chunks).tolist() == [False, True, True, False, False]
    assert coverage.let_go(chunks).tolist() == [True, True, True, True, False]


def test_an_empty_index_needs_nothing() -> None:
    coverage = capture_coverage(TableGroup(TableSpec(name="replay", max_items=100, rows=ROWS)))
    assert coverage.covers(addresses((1, 0, 0))).tolist() == [False]
    assert coverage.let_go(addresses((1, 0, 0))).tolist() == [False]
    nothing = ChunkAddresses.concatenate([])
    assert len(coverage.covers(nothing)) == 0
