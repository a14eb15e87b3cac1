"""Open rows: cutting a stream in any pieces gives the same chunks and items."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rollstream.replay.open_rows import OpenRows
from rollstream.replay.rules import NStep
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
