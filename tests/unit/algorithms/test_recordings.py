"""Recorded data that a table begins with: read, fitted, and given returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollstream.algorithms.recordings import RETURN, Recording, read_recordings, with_returns
from rollstream.errors import ConfigError
from rollstream.replay import MinSize, SampleToInsertRatio, TableSpec
from rollstream.replay.rules import EachRow, NStep
from rollstream.spaces import Column, RowSpec

ROWS = RowSpec(
    (
        Column(name="observation", dtype="<f4", shape=(2,)),
        Column(name="action", dtype="<i8", shape=()),
        Column(name="reward", dtype="<f4", shape=()),
    )
)
RATIO = SampleToInsertRatio(samples_per_insert=2.0, min_items=1, tolerance_items=10)


@dataclass(frozen=True)
class Begins:
    """An agent whose table begins with a recording."""

    recordings: dict[str, Recording]


def table(rows: RowSpec = ROWS, **settings: Any) -> TableSpec:
    return TableSpec(name="replay", max_items=2, rows=rows.fields, **settings)


def saved(folder: Path, **arrays: Any) -> Recording:
    """Two episodes, of 3 steps that end and of 2 that are cut off."""
    columns = {
        "observation": np.arange(10.0).reshape(5, 2),
        "action": np.arange(5),
        "reward": np.array([1.0, 2.0, 4.0, 8.0, 16.0]),
        "next_observation": np.arange(10.0).reshape(5, 2) + 2,
        "terminated": np.array([0, 0, 1, 0, 0]),
        "truncated": np.array([0, 0, 0, 0, 1]),
    }
    np.savez(folder / "play.npz", **{**columns, **arrays})
    return Recording(source=str(folder / "play.npz"), discount=0.5)


def read(recording: Recording, spec: TableSpec) -> Any:
    return read_recordings(Begins({"replay": recording}), {"replay": spec})["replay"]


def test_an_agent_without_recordings_has_none() -> None:
    assert read_recordings(object(), {"replay": table()}) == {}


def test_rows_get_the_tables_columns_and_the_table_is_as_large_as_the_data(tmp_path: Path) -> None:
    found = read(saved(tmp_path, coach=np.zeros(5)), table(limiter=MinSize(min_items=1)))
    assert found.spec.row_spec == found.data.row_spec == ROWS
    assert (found.items, found.spec.max_items, len(found.data.rows)) == (5, 5, 7)
    assert found.rule == NStep(1)
    assert found.data.rows["observation"].dtype == np.float32


def test_returns_are_discounted_to_the_end_of_the_episode(tmp_path: Path) -> None:
    found = read(saved(tmp_path), table(RowSpec((*ROWS.columns, RETURN))))
    assert found.data.rows["return"].tolist() == [1 + 0.5 * 2 + 0.25 * 4, 2 + 0.5 * 4, 4, 0, 8 + 0.5 * 16, 16, 0]


def test_returns_do_not_cross_from_one_episode_to_the_one_before() -> None:
    rows = np.zeros(3, RowSpec(ROWS.columns).dtype)
    rows["reward"], rows["flags"] = [1.0, 1.0, 5.0], [1, 0, 1]
    assert with_returns(rows, discount=1.0).tolist() == [2.0, 1.0, 5.0]


def test_a_limiter_that_keeps_a_ratio_counts_from_the_end_of_the_data(tmp_path: Path) -> None:
    limiter = read(saved(tmp_path), table(limiter=RATIO)).spec.limiter
    assert (limiter.min_items, limiter.min_diff, limiter.max_diff) == (5, 0.0, 20.0)


def test_data_without_episodes_is_rows_that_stand_for_themselves(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", observation=np.zeros((3, 2)), action=np.zeros(3, np.int64), reward=np.zeros(3))
    recording = Recording(source=str(tmp_path / "rows.npz"))
    found = read(recording, table())
    assert (found.rule, found.items) == (EachRow(), 3)
    with pytest.raises(ConfigError, match="does not say where episodes end, so there are no returns; use bc"):
        read(recording, table(RowSpec((*ROWS.columns, RETURN))))


def test_a_recording_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="settings.offline must be a recording of this environment"):
        read(saved(tmp_path, observation=np.zeros((5, 3)), next_observation=np.zeros((5, 3))), table())


def test_a_recording_must_be_named() -> None:
    with pytest.raises(ConfigError, match="settings.offline is empty; name the recorded data"):
        read(Recording(source=""), table())
