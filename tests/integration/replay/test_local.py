"""A `LocalReplay` of one's own: its data stay, whatever ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, SchemaMismatch, TableError
from rollstream.replay import Prioritized, SampleToInsertRatio, TableSpec, TableWriter
from rollstream.replay.local import LocalReplay
from rollstream.replay.rules import EachRow
from rollstream.spaces import Column, RowSpec
from rollstream.store import keys

ROWS = RowSpec((Column(name="number", dtype="<i8"),))
NARROW = SampleToInsertRatio(samples_per_insert=1.0, min_items=2, tolerance_items=4.0)


def spec(name: str = "numbers", **changes: Any) -> TableSpec:
    return TableSpec.model_validate({"name": name, "max_items": 1000, "rows": ROWS, **changes})


def append(writer: TableWriter, count: int, *, first: int = 0, deadline_s: float = 5.0) -> Any:
    rows = np.zeros(count, ROWS.dtype)
    rows["number"] = np.arange(first, first + count)
    return writer.append_rows(rows, np.array([0, count]), deadline_s=deadline_s)


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[LocalReplay]:
    with LocalReplay(tmp_path / "data", tables=[spec()]) as made:
        yield made


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A program of a library user, which tells on standard output how far it is."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, process.stderr and process.stderr.read()
    return line


def test_what_was_written_is_there_when_the_directory_is_opened_again(tmp_path: Path) -> None:
    with LocalReplay(tmp_path, tables=[spec(sampler=Prioritized(exponent=1.0))]) as replay:
        with closing(replay.writer("numbers", EachRow(), environments=1)) as writer:
            written = append(writer, 100).keys["numbers"]
        with closing(replay.client("numbers")) as client:
            client.update_priorities(written[:1], np.array([5.0]))
            before = client.info()
    with LocalReplay(tmp_path) as replay, closing(replay.client("numbers")) as client:
        assert replay.tables == ("numbers",)
        after = client.info()
        assert {name: after[name] for name in ("items", "inserted", "max_priority")} == {
            name: before[name] for name in ("items", "inserted", "max_priority")
        }
        got = client.get(written[:2])
        assert got.priority.tolist() == [5.0, 1.0]
        assert got.rows["number"][:, 0].tolist() == [0, 1]


WRITES = """
import sys, numpy as np
from rollstream.replay import TableSpec
from rollstream.replay.local import LocalReplay
from rollstream.replay.local_requests import LocalLink
from rollstream.replay.rules import EachRow
spec = TableSpec(name="numbers", max_items=100_000, rows=[("number", "<i8", ())])
replay = LocalReplay(sys.argv[1], tables=[spec])
writer, client = replay.writer("numbers", EachRow(), environments=1), replay.client("numbers")
for first in range(0, 1_000_000, 50):
    rows = np.zeros(50, spec.row_spec.dtype)
    rows["number"] = np.arange(first, first + 50)
    writer.append_rows(rows, np.array([0, 50]))
    client.sample(batch_items=4, deadline_s=10.0)
    writer.flush(deadline_s=10.0)
    print(first + 50, flush=True)
"""


def test_a_killed_program_loses_nothing_that_was_flushed(tmp_path: Path) -> None:
    program = python(WRITES, str(tmp_path))
    for _ in range(20):
        flushed = int(line_of(program))
    program.send_signal(signal.SIGKILL)
    program.wait(timeout=10)
    with LocalReplay(tmp_path) as replay, closing(replay.client("numbers")) as client:
        assert client.info()["items"] >= flushed
        numbers = client.sample(batch_items=64, deadline_s=10.0).rows["number"]
        assert numbers.max() < client.info()["items"]


def test_settings_given_anew_win_and_a_smaller_table_evicts(tmp_path: Path) -> None:
    with LocalReplay(tmp_path, tables=[spec()]) as replay:
        replay.load("numbers", {"number": np.arange(100)})
    with LocalReplay(tmp_path, tables=[spec(max_items=10)]) as replay, closing(replay.client("numbers")) as client:
        assert replay.spec("numbers").max_items == 10
        assert client.info()["items"] == 10
        with pytest.raises(ConfigError, match="chunk_rows of table numbers is 1 and cannot become 4"):
            replay.create(spec(chunk_rows=4))
        with pytest.raises(SchemaMismatch, match="number <i8"):
            replay.create(spec(rows=[["number", "<f4", []]]))


def test_a_snapshot_is_taken_on_the_way_and_rows_nobody_needs_are_deleted(tmp_path: Path) -> None:
    with (
        LocalReplay(tmp_path, tables=[spec(max_items=500)]) as replay,
        closing(replay.writer("numbers", EachRow(), environments=1)) as writer,
        closing(replay.client("numbers")) as client,
    ):
        for first in range(0, 120_000, 20_000):
            append(writer, 20_000, first=first)
            writer.flush(deadline_s=20.0)
        clock = SystemClock()
        for _ in range(3):
            clock.sleep(0.6)
            client.info()
        store = replay._store
        assert store.client.exists(keys.table_snapshot("local.numbers", 0))
        left = sum(1 for _ in store.client.scan_iter(match="*", count=10_000))
        assert left < 2_000


def test_a_temporary_directory_goes_with_it() -> None:
    with LocalReplay(tables=[spec()]) as replay:
        socket = Path(replay._address.path)
        assert socket.exists()
    assert not socket.parent.exists()


def test_a_dropped_table_leaves_no_key(replay: LocalReplay) -> None:
    replay.create(spec("recent", rows_of="numbers"))
    replay.load("numbers", {"number": np.arange(100)})
    with pytest.raises(TableError, match="table local.numbers cannot be dropped while local.recent share its rows"):
        replay.drop("numbers")
    replay.drop("recent")
    replay.drop("numbers")
    assert replay.tables == ()
    assert list(replay._store.client.scan_iter(match="*local.numbers*")) == []


def test_a_server_that_dies_comes_back_with_its_data(tmp_path: Path) -> None:
    with LocalReplay(tmp_path, tables=[spec()]) as replay, closing(replay.client("numbers")) as client:
        replay.load("numbers", {"number": np.arange(50)})
        psutil.Process(int((tmp_path / "server.pid").read_text())).kill()
        assert len(client.sample(batch_items=32, deadline_s=30.0)) == 32
        replay.load("numbers", {"number": np.arange(50, 100)})
        assert client.info()["items"] == 100


def test_a_full_server_makes_writers_wait_and_samplers_go_on(tmp_path: Path) -> None:
    frames = RowSpec((Column(name="frame", dtype="|u1", shape=(4000,)),))
    with LocalReplay(tmp_path, tables=[spec("frames", rows=frames, max_items=10_000, encoding="raw")]) as replay:
        writer, client = replay.writer("frames", EachRow(), environments=1), replay.client("frames")
        rows = np.zeros(500, frames.dtype)
        writer.append_rows(rows, np.array([0, 500]))
        writer.flush(deadline_s=10.0)
        server = replay._store.client
        server.config_set("maxmemory", str(int(server.info("memory")["used_memory"]) + 1_000_000))
        with pytest.raises(DeadlineExceeded, match="out of memory"):
            for _ in range(10):
                writer.append_rows(rows, np.array([0, 500]), deadline_s=1.0)
        assert len(client.sample(batch_items=32, deadline_s=10.0)) == 32
        before = client.info()["items"]
        server.config_set("maxmemory", "0")
        SystemClock().sleep(1.1)
        writer.flush(deadline_s=20.0)
        assert client.info()["items"] > before
        writer.close()
        client.close()
