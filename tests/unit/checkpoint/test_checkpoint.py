"""Checkpoints: atomic, verified, pruned."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rollstream.checkpoint import (
    list_checkpoints,
    newest_good,
    prune,
    read_checkpoint,
    resolve,
    verify_checkpoint,
    write_checkpoint,
)
from rollstream.checkpoint.tree import join, split
from rollstream.errors import CheckpointError

STATE = {
    "update": {"parameters": np.arange(5, dtype=np.float32), "count": np.asarray(7)},
    "flow": {"publish": {"updates": 3}, "names": ["a", "b"], "none": None, "flag": True, "share": 0.1},
}


def write(folder: Path, **facts: object) -> Path:
    return write_checkpoint(folder, state=STATE, blobs={"table-replay": b"rows"}, facts=facts).path


def test_what_is_written_is_read_back_exactly(tmp_path: Path) -> None:
    loaded = read_checkpoint(write(tmp_path, version=4))
    np.testing.assert_array_equal(loaded.state["update"]["parameters"], STATE["update"]["parameters"])
    assert loaded.state["update"]["parameters"].dtype == np.float32
    assert loaded.state["update"]["count"].shape == ()
    assert loaded.state["flow"] == STATE["flow"]
    assert loaded.blobs == {"table-replay": b"rows"}
    assert loaded.record.manifest["version"] == 4


def test_parts_that_are_too_large_for_memory_write_themselves_and_are_verified(tmp_path: Path) -> None:
    exports = {"table-replay": lambda path: path.write_bytes(b"rows of a table")}
    path = write_checkpoint(tmp_path, state=STATE, exports=exports, facts={}).path
    loaded = read_checkpoint(path)
    assert loaded.exports == {"table-replay": path / "table-replay.export"}
    assert loaded.exports["table-replay"].read_bytes() == b"rows of a table"
    assert json.loads((path / "manifest.json").read_text())["files"]["table-replay.export"]["bytes"] == 15
    (path / "table-replay.export").write_bytes(b"rows of a tablE")
    assert "table-replay.export has changed since it was written" in verify_checkpoint(path)[0]


def test_a_part_that_could_not_be_written_leaves_no_checkpoint(tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        path.write_bytes(b"half")
        raise CheckpointError("the shard is away")

    with pytest.raises(CheckpointError, match="the shard is away"):
        write_checkpoint(tmp_path, state=STATE, exports={"table-replay": fails}, facts={})
    assert list(tmp_path.iterdir()) == []


def test_the_manifest_lists_every_file_with_its_checksum_and_every_array(tmp_path: Path) -> None:
    manifest = json.loads((write(tmp_path) / "manifest.json").read_text())
    assert set(manifest["files"]) == {"state.json", "arrays.safetensors", "table-replay.bin"}
    assert manifest["arrays"]["update.parameters"] == ["float32", [5]]


def test_a_changed_byte_is_found_and_the_previous_checkpoint_is_used(tmp_path: Path) -> None:
    first, second = write(tmp_path), write(tmp_path)
    data = bytearray((second / "arrays.safetensors").read_bytes())
    data[-1] ^= 1
    (second / "arrays.safetensors").write_bytes(data)
    assert "checksum differs" in verify_checkpoint(second)[0]
    with pytest.raises(CheckpointError, match="cannot be trusted: arrays.safetensors has changed since it was written"):
        read_checkpoint(second)
    record = newest_good(tmp_path)
    assert record is not None and record.path == first


def test_a_truncated_or_missing_file_is_found(tmp_path: Path) -> None:
    path = write(tmp_path)
    (path / "table-replay.bin").write_bytes(b"ro")
    (path / "state.json").unlink()
    problems = " ".join(verify_checkpoint(path))
    assert "has 2 bytes, the manifest says 4" in problems
    assert "state.json cannot be read: No such file" in problems


def test_an_unreadable_manifest_and_another_format_are_named(tmp_path: Path) -> None:
    path = write(tmp_path)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    assert "has format 99; this version reads format 1" in verify_checkpoint(path)[0]
    (path / "manifest.json").write_text("{")
    assert "cannot be read" in verify_checkpoint(path)[0]
    assert list_checkpoints(tmp_path) == []


def test_pruning_keeps_the_newest_and_clears_what_dead_writers_left(tmp_path: Path) -> None:
    for _ in range(4):
        write(tmp_path)
    (tmp_path / ".00000009.999999999.partial").mkdir()
    prune(tmp_path, keep=2)
    assert [record.number for record in list_checkpoints(tmp_path)] == [3, 4]
    assert not list(tmp_path.glob(".*.partial"))


def test_numbers_go_on_after_pruning(tmp_path: Path) -> None:
    for _ in range(3):
        write(tmp_path)
    prune(tmp_path, keep=1)
    assert write(tmp_path).name == "00000004"


def test_a_run_a_folder_and_a_checkpoint_all_resolve(tmp_path: Path) -> None:
    path = write(tmp_path / "run" / "checkpoints")
    assert resolve(path).path == resolve(path.parent).path == resolve(tmp_path / "run").path == resolve(tmp_path).path == path


def test_resolving_nothing_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no checkpoint that can be trusted at"):
        resolve(tmp_path)


FILL = """
import resource, sys
from pathlib import Path
import numpy as np
from rollstream.checkpoint import write_checkpoint
from rollstream.errors import CheckpointError
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_checkpoint(Path(sys.argv[1]), state={"x": np.zeros(100_000)}, facts={})
except CheckpointError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def test_a_full_disk_is_named_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    good = write(tmp_path)
    done = subprocess.run([sys.executable, "-c", FILL, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 5, done.stderr
    assert "cannot write checkpoint" in done.stdout and "File too large" in done.stdout
    assert "previous checkpoint is untouched" in done.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == [good.name]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096


def test_a_tree_refuses_what_it_cannot_save() -> None:
    with pytest.raises(CheckpointError, match=r"state at flow\.x is a set, which cannot be saved"):
        split({"flow": {"x": {1}}})
    with pytest.raises(CheckpointError, match=r"has the key 3; keys are strings"):
        split({"flow": {3: 1}})


def test_a_missing_array_is_named() -> None:
    value, arrays = split({"a": {"b": np.zeros(2)}})
    arrays.clear()
    with pytest.raises(CheckpointError, match="names the array 'a.b' but does not hold it"):
        join(value, arrays)
