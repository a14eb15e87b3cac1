"""Recorded rows in one call: what comes into Redis, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch, TableError
from rollstream.replay import EachRow, Episode
from rollstream.spaces import Column, RowSpec, optional

ROWS = RowSpec((Column(name="observation", dtype="<f4", shape=(2,)), Column(name="action", dtype="<i8")))


def runs(entry: Any) -> list[tuple[int, int, int]]:
    return list(zip(entry.env.tolist(), entry.start.tolist(), entry.length.tolist(), strict=True))


def test_recorded_rows_are_inserted_in_one_call(log: Any) -> None:
    log.create(chunk_rows=2)
    writer = log.writer({"replay": []})
    count = 50_001
    rows = {"observation": np.zeros((count, 2), np.float32), "action": np.arange(count)}
    result = writer.insert(rows, priorities=np.arange(count, dtype=np.float64), version=3)
    assert (result.items, result.rows, len(set(result.keys["replay"].tolist()))) == (count, count, count)
    writer.close()
    entries = log.entries()
    assert sum(entry.items for entry in entries) == count
    assert entries[-1].end.tolist() == [50_002]
    assert [len(entry.episode_env) for entry in entries if entry.items] == [1, *[0] * (len(entries) - 2)]
    assert np.concatenate([entry.priority for entry in entries if entry.priority is not None]).tolist() == list(range(count))
    assert all((entry.version == 3).all() for entry in entries)


def test_recorded_episodes_are_cut_as_the_rules_say(log: Any) -> None:
    log.create()
    with log.writer({"replay": Episode(10)}) as writer:
        rows = {"observation": np.zeros((7, 2)), "action": np.arange(7)}
        writer.insert(rows, offsets=[0, 3, 7], terminated=[True, False])
    (entry,) = [entry for entry in log.entries() if entry.items]
    assert runs(entry) == [(0, 0, 3), (0, 3, 4)]
    assert log.rows(entry.writer, 0, 7)["flags"].tolist() == [1, 0, 10, 1, 0, 0, 12]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"priorities": [1.0, 2.0]}, "2 priorities were given for 3 rows; give one for each"),
        ({"priorities": [1.0, np.nan, 2.0]}, "priorities must be finite and >= 0, some are not"),
        ({"offsets": [0, 3], "priorities": [1.0] * 3}, "insert takes priorities of rows or offsets of episodes, got both"),
        ({"offsets": [0, 1, 3]}, "offsets of episodes go from 0 to the 3 rows, at least 2 rows an episode"),
        ({"offsets": [0, 3], "terminated": [True, False]}, "terminated has 2 entries for 1 episodes; give one for each"),
    ],
)
def test_recorded_rows_that_do_not_fit_are_refused(log: Any, settings: dict[str, Any], message: str) -> None:
    log.create()
    writer = log.writer({"replay": EachRow()})
    with pytest.raises(TableError, match=message):
        writer.insert({"observation": np.zeros((3, 2)), "action": np.zeros(3, np.int64)}, **settings)
    assert log.entries() == []


def test_recorded_rows_must_have_all_columns(log: Any) -> None:
    log.create(rows=RowSpec((*ROWS.columns, *optional(Column(name="goal", dtype="<f4")))))
    writer = log.writer({"replay": EachRow()})
    with pytest.raises(SchemaMismatch, match="the rows lack the columns observation, given are: action"):
        writer.insert({"action": np.zeros(3, np.int64)})
    with pytest.raises(SchemaMismatch, match="there are no columns to insert"):
        writer.insert({})
