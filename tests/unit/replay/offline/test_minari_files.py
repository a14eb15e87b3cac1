"""Minari datasets, written by Minari itself and read as rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import ConfigError
from rollstream.replay.offline import load_minari
from rollstream.spaces import Flag

minari: Any = pytest.importorskip("minari", reason="needs the extra minari")
data_collector: Any = pytest.importorskip("minari.data_collector.episode_buffer")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")
END, CUT = Flag.FINAL | Flag.TERMINATED, Flag.FINAL | Flag.TRUNCATED
DATASET = "rollstream/walk-v0"


def episode(number: int, *, steps: int, terminated: bool) -> Any:
    """The observation counts the steps; each step's reward is its number."""
    ends = [False] * (steps - 1) + [True]
    return data_collector.EpisodeBuffer(
        id=number,
        observations={"place": np.arange(steps + 1.0).repeat(2).reshape(-1, 2), "room": np.arange(steps + 1)},
        actions=(np.arange(steps, dtype=np.float32) / 10)[:, None],
        rewards=[step + 1.0 for step in range(steps)],
        terminations=ends if terminated else [False] * steps,
        truncations=[False] * steps if terminated else ends,
        infos={},
    )


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two episodes: one that terminates after 3 steps, one that is cut after 2."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    minari.create_dataset_from_buffers(
        DATASET,
        buffer=[episode(0, steps=3, terminated=True), episode(1, steps=2, terminated=False)],
        observation_space=spaces.Dict({"place": spaces.Box(-np.inf, np.inf, (2,), np.float64), "room": spaces.Discrete(5)}),
        action_space=spaces.Box(-1.0, 1.0, (1,), np.float32),
        algorithm_name="none",
        author="nobody",
        author_email="nobody@example.org",
        code_permalink="none",
        description="A walk.",
    )
    return tmp_path / DATASET


@pytest.mark.parametrize("by", ["id", "folder", "data folder"])
def test_a_dataset_is_read_by_its_id_or_its_folder(dataset: Path, by: str) -> None:
    data = load_minari({"id": DATASET, "folder": dataset, "data folder": dataset / "data"}[by])
    assert [(column.name, column.dtype, column.shape) for column in data.row_spec.columns] == [
        ("observation.place", "<f8", (2,)),
        ("observation.room", "<i8", ()),
        ("action", "<f4", (1,)),
        ("reward", "<f4", ()),
    ]
    assert data.rows["flags"].tolist() == [Flag.FIRST, 0, 0, END, Flag.FIRST, 0, CUT]
    assert data.rows["observation.place"][:, 1].tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert data.rows["observation.room"].tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert data.rows["reward"].tolist() == [1, 2, 3, 0, 1, 2, 0]
    assert data.rows["action"][:, 0].tolist() == pytest.approx([0, 0.1, 0.2, 0, 0, 0.1, 0])


@pytest.mark.usefixtures("dataset")
def test_some_episodes_and_narrow_floats() -> None:
    data = load_minari(DATASET, episodes=[1], float32=True)
    assert data.rows["flags"].tolist() == [Flag.FIRST, 0, CUT]
    assert data.row_spec.columns[0].dtype == "<f4"


@pytest.mark.usefixtures("dataset")
def test_what_is_not_there_is_refused_with_what_there_is() -> None:
    with pytest.raises(ConfigError, match=f"no Minari dataset 'walk' on this machine; there are: {DATASET}"):
        load_minari("walk")
    with pytest.raises(ConfigError, match="has no episode 2; it has 2, from 0 on"):
        load_minari(DATASET, episodes=[0, 2])


def test_a_damaged_dataset_is_refused_by_its_name(dataset: Path) -> None:
    (dataset / "data" / "metadata.json").write_text("{")
    with pytest.raises(ConfigError, match="Minari cannot open the dataset .*walk-v0"):
        load_minari(dataset)


def test_damaged_episodes_are_refused_by_the_name_of_the_dataset(dataset: Path) -> None:
    file = dataset / "data" / "main_data.hdf5"
    file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises(ConfigError, match="walk-v0"):
        load_minari(dataset)


def test_without_minari_the_message_says_how_to_install_it(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ConfigError, match=r"needs Minari: pip install 'rollstream\[minari\]'"):
        load_minari(dataset)
