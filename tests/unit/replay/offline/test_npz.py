"""NumPy archives as rows, and tables as NumPy archives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.replay.offline import dump_npz, load_npz
from rollstream.replay.offline.dump import DumpedShard, RowRuns, runs_of_items
from rollstream.replay.offline.npz import rows_from_arrays
from rollstream.spaces import Column, Flag, RowSpec

END, CUT = Flag.FINAL | Flag.TERMINATED, Flag.FINAL | Flag.TRUNCATED


@pytest.fixture
def archive(tmp_path: Path):  # type: ignore[no-untyped-def]
    def save(**arrays: object) -> Path:
        path = tmp_path / "data.npz"
        np.savez(path, **arrays)  # type: ignore[arg-type]
        return path

    return save


def test_the_names_of_d4rl_are_understood(archive) -> None:  # type: ignore[no-untyped-def]
    data = load_npz(
        archive(
            observations=np.ones((4, 3), np.float32),
            next_observations=np.full((4, 3), 2.0, np.float32),
            actions=np.zeros((4, 1)),
            rewards=np.arange(4.0),
            terminals=np.array([0, 1, 0, 0]),
            timeouts=np.array([0, 0, 0, 1]),
        )
    )
    assert [column.name for column in data.row_spec.columns] == ["observation", "action", "reward"]
    assert data.rows["flags"].tolist() == [Flag.FIRST, 0, END, Flag.FIRST, 0, CUT]
    assert data.rows["observation"][:, 0].tolist() == [1, 1, 2, 1, 1, 2]


@pytest.mark.parametrize("given", [{"episode_starts": [0, 3]}, {"episode_ends": [3, 5]}])
def test_episodes_may_be_given_by_their_bounds(archive, given: dict[str, list[int]]) -> None:  # type: ignore[no-untyped-def]
    data = load_npz(archive(observation=np.arange(5.0), **given))
    assert data.rows["flags"].tolist() == [Flag.FIRST, 0, CUT, Flag.FIRST, CUT]


def test_columns_are_renamed_and_dropped(archive) -> None:  # type: ignore[no-untyped-def]
    path = archive(state=np.zeros((3, 2)), u=np.zeros(3), junk=np.zeros(7))
    data = load_npz(path, rename={"state": "observation", "u": "action"}, drop=["junk"], float32=True)
    assert [(column.name, column.dtype) for column in data.row_spec.columns] == [("observation", "<f4"), ("action", "<f4")]


def test_names_of_the_tables_columns_stay_as_they_are(archive) -> None:  # type: ignore[no-untyped-def]
    path = archive(obs=np.zeros(3), rewards=np.zeros(3))
    assert [column.name for column in load_npz(path, keep=["obs"]).row_spec.columns] == ["obs", "reward"]


def test_a_name_that_is_not_there_is_refused(archive) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match="has no array 'state'; it has: observation"):
        load_npz(archive(observation=np.zeros(3)), rename={"state": "observation"})


def test_lists_become_arrays_and_ragged_ones_are_refused_by_name() -> None:
    assert rows_from_arrays({"action": [1, 2]}, source="x").rows["action"].tolist() == [1, 2]
    with pytest.raises(ConfigError, match="x: 'action' is no array, its parts have different shapes"):
        rows_from_arrays({"action": [[1], [2, 3]]}, source="x")


def test_two_arrays_for_one_column_are_refused(archive) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match="has two arrays for the column 'reward'"):
        load_npz(archive(reward=np.zeros(3), rewards=np.zeros(3)))


def test_a_file_that_is_no_archive_is_refused_by_its_name(tmp_path: Path) -> None:
    text, single, missing = tmp_path / "notes.npz", tmp_path / "one.npy", tmp_path / "missing.npz"
    text.write_text("not an archive")
    np.save(single, np.zeros(3))
    with pytest.raises(ConfigError, match=r"notes.npz is no NumPy archive that can be read"):
        load_npz(text)
    with pytest.raises(ConfigError, match=r"one.npy holds one array without a name"):
        load_npz(single)
    with pytest.raises(ConfigError, match=r"missing.npz is no NumPy archive that can be read"):
        load_npz(missing)


def test_an_array_of_python_objects_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "objects.npz"
    np.savez(path, action=np.zeros(2), info=np.array([{}, {}], dtype=object))
    with pytest.raises(ConfigError, match=r"array 'info' of .*objects.npz cannot be read"):
        load_npz(path)


def test_a_cut_off_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.npz"
    np.savez(path, action=np.zeros(10_000))
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ConfigError, match="is no NumPy archive that can be read"):
        load_npz(path)


def test_bounds_of_episodes_must_be_whole_numbers(archive) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match=r"starts or ends of episodes must be whole numbers \[E\], got float64"):
        load_npz(archive(observation=np.zeros(3), episode_starts=np.array([0.0])))


def test_items_that_overlap_share_rows_in_a_dump() -> None:
    writer, env = np.array([2, 1, 1, 1, 1]), np.array([0, 1, 0, 0, 0])
    start, length = np.array([5, 5, 0, 2, 10]), np.array([1, 2, 3, 4, 1])
    runs, first = runs_of_items(writer, env, start, length)
    assert runs.writer.tolist() == [1, 1, 1, 2]
    assert runs.env.tolist() == [0, 0, 1, 0]
    assert runs.start.tolist() == [0, 10, 5, 5]
    assert runs.length.tolist() == [6, 1, 2, 1]
    assert first.tolist() == [9, 7, 0, 2, 6]


def test_no_items_have_no_runs() -> None:
    nothing = np.zeros(0, np.int64)
    runs, first = runs_of_items(nothing, nothing, nothing, nothing)
    assert len(runs.start) == len(first) == 0


def test_runs_are_fetched_chunk_by_chunk() -> None:
    runs = RowRuns(
        writer=np.array([1, 2], np.uint32), env=np.array([0, 3], np.uint32), start=np.array([7, 0]), length=np.array([5, 2])
    )
    pieces = runs.chunks(chunk_rows=4)
    assert pieces.start.tolist() == [7, 8, 0]
    assert pieces.length.tolist() == [1, 4, 2]
    assert pieces.env.tolist() == [0, 0, 3]
    single = runs.chunks(chunk_rows=1)
    assert single.start.tolist() == [7, 8, 9, 10, 11, 0, 1]
    assert set(single.length.tolist()) == {1}


ROWS = RowSpec((Column(name="reward", dtype="<f4"),))


def shard(start: list[int], length: list[int]) -> DumpedShard:
    """Rows whose reward is their number; row 3 ends an episode, row 4 begins one."""

    def fetch(runs: RowRuns) -> np.ndarray:
        numbers = np.concatenate([np.arange(s, s + n) for s, n in zip(runs.start, runs.length, strict=True)])
        rows = np.zeros(len(numbers), ROWS.dtype)
        rows["reward"] = numbers
        rows["flags"] = (numbers == 0) | (numbers == 4)
        rows["flags"][numbers == 3] = END
        return rows

    items = {"start": np.array(start), "length": np.array(length), "priority": np.ones(len(start), np.float32)}
    return DumpedShard(items={**items, "writer": np.ones(len(start)), "env": np.zeros(len(start))}, fetch=fetch)


def test_a_dump_is_read_back_with_its_flags_and_its_gaps(tmp_path: Path) -> None:
    path = tmp_path / "dump.npz"
    assert dump_npz(path, [shard([0, 1, 6], [2, 3, 2]), shard([4], [2])]) == 4
    with np.load(path) as archive:
        assert archive["item_first_row"].tolist() == [0, 1, 4, 6]
        assert archive["run_starts"].tolist() == [0, 4, 6]
    data = load_npz(path)
    assert data.row_spec == ROWS
    assert data.rows["reward"].tolist() == [0, 1, 2, 3, 6, 7, 4, 5]
    assert data.rows["flags"].tolist() == [1, 0, 0, END, 1, 0, 1, 0]


def test_items_whose_rows_are_gone_are_left_out_of_a_dump(tmp_path: Path) -> None:
    whole = shard([0, 1, 6], [2, 3, 2])

    def fetch(runs: RowRuns) -> np.ndarray:
        rows = whole.fetch(runs)
        rows["flags"][3] = Flag.PAD
        return rows

    path = tmp_path / "dump.npz"
    assert dump_npz(path, [DumpedShard(items=whole.items, fetch=fetch)]) == 2
    with np.load(path) as archive:
        assert archive["item_first_row"].tolist() == [0, 4]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (np.zeros(3), r"flags must be uint8 \[R\], got float64"),
        (np.zeros(2, np.uint8), "flags has 2 entries for 3 rows"),
    ],
)
def test_flags_that_cannot_be_are_refused(archive, flags: np.ndarray, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match=message):
        load_npz(archive(flags=flags, reward=np.zeros(3, np.float32)))


def test_a_dump_into_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write .*nowhere/dump.npz: No such file"):
        dump_npz(tmp_path / "nowhere" / "dump.npz", [shard([0], [1])])
