"""n-step windows: they never cross an episode or the write pointer, and share no memory with what they came from."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.replay import NStep, TableGroup, TableSpec, n_step
from rollstream.replay.log import InsertEntry, UpdateEntry
from rollstream.replay.open_rows import OpenRows
from rollstream.spaces import Column, Flag, RowSpec

SPEC = RowSpec(
    (Column(name="observation", dtype="<f4", shape=(2,)), Column(name="action", dtype="<i8"), Column(name="reward", dtype="<f4"))
)


def episode(rewards: list[float], *, first_observation: float, end: Flag) -> np.ndarray:
    """Rows of one episode: observations count up from `first_observation`; the last row is the final observation."""
    rows = np.zeros(len(rewards) + 1, SPEC.dtype)
    rows["observation"][:, 0] = first_observation + np.arange(len(rows))
    rows["reward"][:-1] = rewards
    rows["flags"][0] = Flag.FIRST
    rows["flags"][-1] = Flag.FINAL | end
    return rows


def windows(rows: np.ndarray, *, steps: int, pieces: int = 1) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Items of a stream as a sampler would see them: columns [B, L, ...] and lengths [B], in order of their start."""
    state = OpenRows(SPEC.dtype, environments=1, rule=NStep(steps), chunk_rows=1)
    items: list[tuple[int, int]] = []
    for part in np.array_split(rows, pieces):
        cut = state.cut(part, np.array([0, len(part)]), closing=False)
        items += zip(cut.start.tolist(), cut.length.tolist(), strict=True)
        state.advance(cut)
    items.sort()
    out = np.zeros((len(items), steps + 1), SPEC.dtype)
    out["flags"] = Flag.PAD
    for at, (start, length) in enumerate(items):
        out[at, :length] = rows[start : start + length]
    columns = {name: np.ascontiguousarray(out[name]) for name in SPEC.dtype.names or ()}
    return columns, np.array([length for _, length in items], np.int32)


def test_o12_a_window_never_mixes_episodes_and_discounts_by_its_real_steps() -> None:
    stream = np.concatenate(
        [
            episode([1.0] * 7, first_observation=0, end=Flag.TERMINATED),
            episode([1.0] * 6, first_observation=100, end=Flag.TRUNCATED),
        ]
    )
    for pieces in (1, 4, 13):
        rows, lengths = windows(stream, steps=3, pieces=pieces)
        columns = n_step(rows, lengths, discount=0.5)
        begins, ends = columns["observation"][:, 0], columns["next_observation"][:, 0]
        assert ((begins < 100) == (ends < 100)).all()
        k = ends - begins
        assert k.tolist() == (lengths - 1).tolist()
        assert columns["reward"] == pytest.approx(sum((step < k) * 0.5**step for step in range(3)))
        terminal = ends == 7
        assert columns["discount"] == pytest.approx(np.where(terminal, 0.0, 0.5**k))


def test_o13_the_last_step_before_a_time_limit_bootstraps_from_the_true_final_observation() -> None:
    stream = np.concatenate(
        [
            episode([1.0, 2.0, 3.0, 4.0], first_observation=0, end=Flag.TRUNCATED),
            episode([9.0] * 4, first_observation=100, end=Flag.TRUNCATED),
        ]
    )
    rows, lengths = windows(stream, steps=3)
    columns = n_step(rows, lengths, discount=0.9)
    assert columns["observation"][3, 0] == 3.0
    assert columns["reward"][3] == 4.0
    assert columns["next_observation"][3, 0] == 4.0, "the final observation, not the next episode's first"
    assert columns["discount"][3] == pytest.approx(0.9)
    assert columns["reward"][:3] == pytest.approx([1 + 0.9 * 2 + 0.81 * 3, 2 + 0.9 * 3 + 0.81 * 4, 3 + 0.9 * 4])


def test_o14_no_column_shares_memory_with_the_rows_or_with_another() -> None:
    stream = episode([1.0, 2.0, 3.0, 4.0], first_observation=0, end=Flag.TERMINATED)
    rows, lengths = windows(stream, steps=3)
    for count in (1, len(lengths)):
        columns = n_step({name: column[:count] for name, column in rows.items()}, lengths[:count], discount=0.9)
        before = {name: column.copy() for name, column in columns.items()}
        for name, column in columns.items():
            assert not any(np.shares_memory(column, row) for row in rows.values())
            for other, others in columns.items():
                assert name == other or not np.shares_memory(column, others)
        rows["observation"][:] = -1.0
        assert all((columns[name] == before[name]).all() for name in columns)


def insert(group: TableGroup, items: int, *, sequence: int) -> None:
    """The next items of one row each, of priority 1, from one environment."""
    first = items * (sequence - 1)
    assert group.begin(
        InsertEntry(
            writer=1,
            sequence=sequence,
            keep=np.array([first + items], np.uint64),
            end=np.array([first + items], np.uint64),
            start=np.arange(first, first + items, dtype=np.uint64),
            env=np.zeros(items, np.uint32),
            length=np.ones(items, np.uint32),
            version=np.ones(items, np.uint32),
            episode_env=np.zeros(0, np.uint32),
            episode_start=np.zeros(0, np.uint64),
            first_ordinal=first,
            priority=np.ones(items, np.float32),
        )
    )
    assert group.admit() == items


def test_o15_inputs_are_not_changed_and_stale_keys_are_ignored() -> None:
    group = TableGroup(TableSpec(name="replay", max_items=4, rows=SPEC.fields), seed=3)
    for sequence in (1, 2):
        insert(group, 2, sequence=sequence)
    sampled = group.primary.sample(16)
    item_keys, copied = sampled.keys, sampled.keys.copy()
    insert(group, 2, sequence=3)  # two of the sampled items are overwritten meanwhile
    live = group.primary.items.live()
    gone = ~np.isin(item_keys, group.primary.items.key[live])
    group.change(UpdateEntry(keys=item_keys, priority=np.full(16, 5.0, np.float32)))
    assert (item_keys == copied).all()
    assert group.primary.counters["keys_stale"] == gone.sum() > 0
    kept = np.isin(group.primary.items.key[live], item_keys)
    assert group.primary.items.priority[live].tolist() == np.where(kept, 5.0, 1.0).tolist()
    assert not kept[2:].any(), "the newcomers keep their own priority"
