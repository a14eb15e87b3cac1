"""Open rows: cutting a stream in any pieces gives the same chunks and items."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.replay.cut_items import ExplicitItems
from rollstream.replay.open_rows import OpenRows
from rollstream.replay.rules import EachRow, Episode, NStep, TdMix
from rollstream.spaces import Flag

DTYPE = np.dtype([("flags", "u1"), ("version", "<u4"), ("value", "<i4")])


def stream(count: int, *, episode_rows: int) -> np.ndarray:
    rows = np.zeros(count, DTYPE)
    within = np.arange(count) % episode_rows
    rows["flags"] = (within == 0) * Flag.FIRST + (within == episode_rows - 1) * (Flag.FINAL | Flag.TERMINATED)
    rows["value"] = np.arange(count)
    return rows


def write(
    cuts: list[int], *, chunk_rows: int, environments: int = 2
) -> tuple[dict[tuple[int, int], list[int]], set[tuple[int, int, int]]]:
    """Write 30 rows per environment in pieces; returns chunks by (environment, number), and items."""
    rows = stream(30, episode_rows=7)
    state = OpenRows(DTYPE, environments=environments, rule=NStep(3), chunk_rows=chunk_rows)
    chunks: dict[tuple[int, int], list[int]] = {}
    items: set[tuple[int, int, int]] = set()
    edges = [0, *np.cumsum(cuts).tolist()]
    assert edges[-1] == 30
    for begin, end in [*itertools.pairwise(edges), (30, 30)]:
        part = np.concatenate([rows[begin:end]] * environments)
        offsets = np.arange(environments + 1) * (end - begin)
        cut = state.cut(part, offsets, closing=begin == 30)
        for env, number, payload in zip(cut.chunk_env.tolist(), cut.chunk_no.tolist(), cut.payload, strict=True):
            assert (env, number) not in chunks
            chunks[env, number] = payload.view(DTYPE)["value"].tolist()
        items |= set(zip(cut.item_env.tolist(), cut.start.tolist(), cut.length.tolist(), strict=True))
        starts_and_lengths = (cut.start + cut.length).astype(int)
        assert (starts_and_lengths <= cut.end.astype(int)[cut.item_env]).all(), "an item never points at rows that are not there"
        assert (cut.keep <= cut.end).all()
        state.advance(cut)
    return chunks, items


@pytest.mark.parametrize("cuts", [[30], [1] * 30, [5, 0, 1, 10, 14], [29, 1]])
def test_pieces_do_not_matter(cuts: list[int]) -> None:
    assert write(cuts, chunk_rows=1) == write([30], chunk_rows=1)


@pytest.mark.parametrize("cuts", [[30], [1] * 30, [5, 0, 1, 10, 14]])
def test_chunks_of_several_rows_hold_the_same_items(cuts: list[int]) -> None:
    chunks, items = write(cuts, chunk_rows=4)
    assert items == write([30], chunk_rows=1)[1]
    values = [value for number in range(8) for value in chunks[1, number]]
    assert values[:30] == list(range(30))
    assert len(values) == 32


def test_every_row_but_final_ones_starts_one_item() -> None:
    _, items = write([30], chunk_rows=1)
    starts = sorted(start for env, start, _ in items if env == 0)
    # the stream ends within an episode: its last row has no successor, so it starts nothing
    assert starts == [row for row in range(29) if row % 7 != 6]


def test_environments_without_new_rows_keep_their_place() -> None:
    state = OpenRows(DTYPE, environments=2, rule=NStep(2), chunk_rows=1)
    rows = stream(4, episode_rows=50)
    state.advance(state.cut(rows, np.array([0, 4, 4]), closing=False))
    assert state.at_episode_end().tolist() == [False, True]
    cut = state.cut(rows, np.array([0, 0, 4]), closing=False)
    assert cut.item_env.tolist() == [1, 1]
    assert cut.keep.tolist() == [2, 2]


def test_an_environment_may_be_padded_so_that_all_its_rows_are_written() -> None:
    rows = stream(10, episode_rows=5)
    state = OpenRows(DTYPE, environments=2, rule=NStep(1), chunk_rows=4)
    cut = state.cut(np.concatenate([rows[:5], rows[:6]]), np.array([0, 5, 11]), closing=False, pad=np.array([True, False]))
    assert cut.end.tolist() == [8, 4]
    assert cut.payload[1].view(DTYPE)["flags"].tolist() == [int(Flag.FINAL | Flag.TERMINATED), *[int(Flag.PAD)] * 3]
    assert sorted(zip(cut.item_env.tolist(), cut.start.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    state.advance(cut)
    assert state.waiting_rows == 2
    cut = state.cut(rows[5:8], np.array([0, 3, 3]), closing=True)
    assert list(zip(cut.episode_env.tolist(), cut.episode_start.tolist(), strict=True)) == [(0, 8), (1, 5)]
    assert sorted(zip(cut.item_env.tolist(), cut.start.tolist(), strict=True)) == [(0, 8), (0, 9), (1, 3)]


def test_newest_rows_are_kept_for_items_that_are_asked_for() -> None:
    state = OpenRows(DTYPE, environments=1, rule=[], chunk_rows=1, keep_rows=3)
    rows = stream(12, episode_rows=50)
    for begin in range(0, 12, 4):
        cut = state.cut(rows[begin : begin + 4], np.array([0, 4]), closing=False)
        assert cut.keep.tolist() == [begin + 1]
        state.advance(cut)


def test_an_item_that_is_asked_for_waits_until_its_rows_are_written() -> None:
    state = OpenRows(DTYPE, environments=2, rule=[], chunk_rows=4, keep_rows=1)
    rows = stream(8, episode_rows=50)
    asked = ExplicitItems(
        env=np.array([1, 1]),
        start=np.array([0, 2]),
        length=np.array([3, 4]),
        table=np.zeros(2, np.uint8),
        key=np.array([11, 12], np.uint64),
        priority=np.array([1.0, np.nan], np.float32),
    )
    first = state.cut(np.concatenate([rows[:6]] * 2), np.array([0, 6, 12]), closing=False, explicit=asked)
    assert first.items.rest.key.tolist() == [11]
    assert first.keep.tolist() == [3, 2]
    state.advance(first)
    second = state.cut(rows[6:8], np.array([0, 0, 2]), closing=False)
    assert second.items.rest.key.tolist() == [12]
    assert (second.item_env.tolist(), second.start.tolist(), second.length.tolist()) == ([1], [2], [4])


def test_a_rule_must_find_its_columns() -> None:
    with pytest.raises(ConfigError, match="NStep looks at the column 'td', which must be a scalar column of the rows; they have"):
        OpenRows(DTYPE, environments=1, rule=NStep(1, priority=TdMix("td")), chunk_rows=1)


def test_long_episodes_stay_open_row_by_row() -> None:
    """Far more open rows than new ones: they are copied run by run, and the items are the same."""
    rows = stream(2400, episode_rows=1150)
    state = OpenRows(DTYPE, environments=2, rule=[Episode(1000), EachRow()], chunk_rows=1, keep_rows=400)
    items: list[tuple[int, int, int]] = []
    for begin in range(0, 2400, 100):
        part = rows[begin : begin + 100]
        rows["version"] = np.arange(2400)
        cut = state.cut(np.concatenate([part, part[:50]]), np.array([0, 100, 150]), closing=False)
        made = cut.items.rule == 0
        assert (cut.items.version[cut.items.env == 0] == (cut.start + cut.length - 1)[cut.items.env == 0]).all()
        items += zip(cut.item_env[made].tolist(), cut.start[made].tolist(), cut.length[made].tolist(), strict=True)
        assert len(cut.items) - made.sum() == 150 - np.count_nonzero(cut.payload.reshape(-1).view(DTYPE)["flags"] & Flag.FINAL)
        state.advance(cut)
    assert [item for item in items if item[0] == 0] == [(0, 0, 1001), (0, 1000, 150), (0, 1150, 1001), (0, 2150, 150)]
