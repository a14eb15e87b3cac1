"""What a sampled run of rows may hold: rows of one episode, padded and masked, in the types of their spaces."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from rollstream.replay.open_rows import OpenRows
from rollstream.replay.rules import Sequence
from rollstream.replay.run_batch import FetchedRows, RunBatch, RunLayout
from rollstream.replay.spec import TableSpec
from rollstream.spaces import Column, Flag, RowSpec, leaves, row_spec

SPEC = RowSpec((Column(name="episode", dtype="<i4"), Column(name="step", dtype="<i4"), Column(name="reward", dtype="<f4")))
LENGTHS = (3, 8, 20)
"""Steps of the episodes, in turn."""


def stream() -> np.ndarray:
    """Two rounds of the three episodes; a row says which it belongs to."""
    episodes = []
    for number, steps in enumerate(LENGTHS * 2):
        rows = np.zeros(steps + 1, SPEC.dtype)
        rows["episode"], rows["step"] = number + 1, np.arange(steps + 1)
        rows["flags"][0] = Flag.FIRST
        rows["flags"][-1] |= Flag.FINAL | Flag.TRUNCATED
        episodes.append(rows)
    return np.concatenate(episodes)


def sequences(rule: Sequence, rows: np.ndarray, *, pieces: int, evicted_rows: int) -> FetchedRows:
    """What a sampler reads of all items whose rows are still there, when the oldest `evicted_rows` rows are gone."""
    state = OpenRows(SPEC.dtype, environments=1, rule=rule, chunk_rows=1)
    runs: list[tuple[int, int, int]] = []
    for part in np.array_split(rows, pieces):
        cut = state.cut(part, np.array([0, len(part)]), closing=False)
        lead = np.zeros(len(cut.start), np.int64) if cut.items.lead is None else cut.items.lead
        runs += zip(cut.start.tolist(), cut.length.tolist(), lead.tolist(), strict=True)
        state.advance(cut)
    live = sorted(run for run in runs if run[0] >= evicted_rows)
    batch = RunBatch(
        RunLayout(TableSpec(name="t", max_items=10, rows=SPEC.fields)),
        length=np.array([length for _, length, _ in live]),
        lead=np.array([lead for *_, lead in live]),
    )
    batch.put(np.concatenate([rows[start : start + length] for start, length, _ in live]))
    return batch.finished(what="table t")


@pytest.mark.parametrize("evicted_rows", [0, 7])
@pytest.mark.parametrize("pieces", [1, 5, 60])
@pytest.mark.parametrize(
    ("rule", "core_rows"),
    [
        (Sequence(length=8, stride=4), None),
        (Sequence(length=8, stride=8, burn_in=3), None),
        (Sequence(length=8, stride=4, tail="aligned"), None),
        (Sequence(length=8, stride=4, tail="drop"), 9),
    ],
)
def test_o06_no_sequence_crosses_an_episode_and_short_ones_are_padded_and_masked(
    rule: Sequence, core_rows: int | None, pieces: int, evicted_rows: int
) -> None:
    rows = stream()
    fetched = sequences(rule, rows, pieces=pieces, evicted_rows=evicted_rows)
    episode, step, mask = fetched.rows["episode"], fetched.rows["step"], fetched.mask
    core = int(fetched.lead.max())
    assert len(mask) > 0
    assert ((fetched.rows["flags"] == Flag.PAD) == ~mask).all()
    assert (episode[~mask] == 0).all()
    for k in range(len(mask)):
        there = mask[k]
        assert len(set(episode[k, there])) == 1, "one episode"
        assert (np.diff(step[k, there]) == 1).all(), "without a gap"
        assert there.sum() == fetched.lengths[k]
        assert there.argmax() + fetched.lead[k] == core, "all cores begin at one column"
        assert fetched.lengths[k] - fetched.lead[k] <= 9
        if core_rows is not None:
            assert fetched.lengths[k] - fetched.lead[k] == core_rows
    seen = {(int(e), int(s)) for e, s in zip(episode[mask], step[mask], strict=True)}
    if core_rows is None and not evicted_rows:
        assert seen == {(int(row["episode"]), int(row["step"])) for row in rows}, "short episodes are not left out"
    if evicted_rows:
        assert all(e > 1 or s >= evicted_rows for e, s in seen), "nothing that was overwritten"


def test_o19_values_are_stored_and_sampled_in_the_type_of_their_space() -> None:
    space = gymnasium.spaces.Dict(
        {
            "img": gymnasium.spaces.Box(0, 255, (84, 84, 4), np.uint8),
            "vec": gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32),
        }
    )
    rows = row_spec(leaves(space, "observation"), leaves(gymnasium.spaces.Discrete(6), "action"))
    spec = TableSpec(name="t", max_items=10, rows=rows.fields)
    payload_bytes = 84 * 84 * 4 + 3 * 4
    assert payload_bytes < spec.chunk_bytes < payload_bytes + 32, "bytes of a transition are told, and nothing is blown up"
    batch = RunBatch(RunLayout(spec), length=np.array([2, 2]), lead=np.array([0, 0]))
    batch.put(np.zeros(4, rows.dtype))
    columns: dict[str, Any] = dict(batch.finished(what="table t").rows)
    assert columns["observation.img"].dtype == np.uint8
    assert columns["observation.vec"].dtype == np.float32
    assert sum(column.nbytes for column in columns.values()) == 4 * spec.chunk_bytes
