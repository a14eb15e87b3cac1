"""What is kept stays whole: rows and priorities that were lost, memory that stays flat, half files, writers that died."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.replay import NStep, Prioritized
from rollstream.replay.table_memory import SHARD_WORKING_BYTES
from rollstream.store import chunk_prefix, keys

CLOCK = SystemClock()


def test_o08_rows_that_are_gone_are_never_sampled_and_counted(own_cell: Any, eventually: Any) -> None:
    made = own_cell.table(sampler=Prioritized())
    item_keys = made.insert(64)
    own_cell.kill()
    redis = own_cell.store.client
    lost = sorted(redis.keys(chunk_prefix(made.id, 0) + b"*"))[:48]
    redis.unlink(*lost)
    own_cell.start()
    sample = made.client.sample(batch_items=64, deadline_s=30.0)
    there = made.client.known(item_keys)
    assert set(sample.keys.tolist()) <= set(item_keys[there].tolist())
    assert (sample.rows["observation"][:, 0, 0] == [np.flatnonzero(item_keys == key)[0] for key in sample.keys]).all()
    eventually(lambda: made.client.sample(batch_items=64) and made.client.describe()["items"] == 16)
    assert made.client.describe()["missing_rows"] == 48


def test_o08_priorities_that_are_gone_start_at_the_highest_so_far(own_cell: Any, eventually: Any) -> None:
    made = own_cell.table(sampler=Prioritized())
    made.insert(3, priorities=[1.0, 8.0, 2.0])
    own_cell.process.send_signal(signal.SIGTERM)  # it leaves a snapshot
    assert own_cell.process.wait(timeout=30) == 0
    redis = own_cell.store.client
    gone = redis.unlink(*redis.keys(keys.table_snapshot(made.id, 0, "*0.priority*")))
    assert gone == 1
    own_cell.start()
    assert set(made.client.sample(batch_items=32, deadline_s=30.0).priority.tolist()) == {8.0}
    assert re.search(r"snapshot \d+ of table .* has lost: 0.priority", own_cell.log.read_text())


def test_o09_a_snapshot_of_an_empty_and_of_a_half_admitted_table_is_restored(own_cell: Any, eventually: Any) -> None:
    empty = own_cell.table()
    half = own_cell.table(
        limiter={"kind": "sample_to_insert_ratio", "samples_per_insert": 1, "min_items": 4, "tolerance_items": 2}
    )
    writer = half.writer()
    columns = {"observation": np.zeros((16, 2), np.float32), "reward": np.zeros(16, np.float32)}
    writer.insert(columns)
    before = eventually(lambda: (info := half.client.info())["entries_waiting"] and info)
    own_cell.process.send_signal(signal.SIGTERM)
    assert own_cell.process.wait(timeout=30) == 0
    own_cell.start()
    assert empty.client.info(deadline_s=30.0)["items"] == 0
    after = half.client.info()
    told = ("items", "inserted", "sampled", "entries_waiting")
    assert {name: after[name] for name in told} == {name: before[name] for name in told}
    half.client.change({"limiter": {"kind": "min_size", "min_items": 1}})
    writer.flush()
    assert half.client.info()["items"] == 16


def test_o16_memory_is_flat_once_the_table_is_full_and_told_beforehand(own_cell: Any, eventually: Any) -> None:
    made = own_cell.table(max_items=5_000, rows=[("observation", "<f4", (100,))])
    told = made.client.describe()
    at_full, index_at_full = told["bytes_at_full"], told["index_bytes_at_full"]
    assert at_full == made.spec.predicted_bytes(made.id) > 5_000 * 400
    assert index_at_full == made.spec.predicted_index_bytes() > 5_000 * 50
    start = own_cell.redis_bytes()
    writer = made.writer()
    columns = {"observation": np.ones((1_000, 100), np.float32)}
    used = []
    for _ in range(3):
        for _ in range(5):
            writer.insert(columns)
        writer.flush()
        eventually(lambda: len(own_cell.store.client.keys(chunk_prefix(made.id, 0) + b"*")) == 5_000)
        used.append(own_cell.redis_bytes() - start)
    assert made.client.describe()["items"] == 5_000
    assert max(used) < 1.05 * used[0] + 500_000, "the log grows until its snapshot"
    assert max(used) < at_full
    own_cell.store.client.config_set("maxmemory", start + 12_000_000)
    with pytest.raises(ConfigError, match=r"will need \d+ MiB in Redis.* lower max_items to \d+, or raise maxmemory") as refused:
        own_cell.table(max_items=50_000, rows=[("observation", "<f4", (100,))])
    fits = int(re.search(r"lower max_items to (\d+)", str(refused.value)).group(1))  # type: ignore[union-attr]
    own_cell.table(max_items=fits, rows=[("observation", "<f4", (100,))])


def test_o17_frames_stay_within_the_formula_over_many_times_the_table(own_cell: Any) -> None:
    made = own_cell.table(max_items=200, rows=[("observation", "|u1", (4, 84, 84))], unread_entries=1)
    made.insert(2)
    start, rss = own_cell.redis_bytes(), own_cell.rss_bytes()
    writer = made.writer(environments=2, flush_steps=4)
    frames = np.random.default_rng(0).integers(0, 255, (2, 4, 84, 84), np.uint8)
    peak = 0
    for step in range(1_500):
        writer.append({"observation": frames})
        if step % 5 == 0:
            peak = max(peak, own_cell.redis_bytes() - start)
    writer.flush()
    in_flight = 2 * 8 * made.spec.chunk_memory_bytes(made.id)
    assert made.client.info()["inserted"] == 3_002
    assert peak <= 1.2 * (made.spec.predicted_bytes(made.id) + in_flight)
    assert own_cell.rss_bytes() - rss <= 1.2 * (made.spec.predicted_index_bytes() + SHARD_WORKING_BYTES)


EXPORTING = """
import resource, sys
from pathlib import Path
from rollstream.clock import SystemClock
from rollstream.replay import TableClient
from rollstream.store import Store, parse_address

address = parse_address(sys.argv[1])
client = TableClient(Store(address, clock=SystemClock()), address, table_id=sys.argv[2], clock=SystemClock())
client.info()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("begin", flush=True)
client.export_to(Path(sys.argv[3]))
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


def test_o18_an_export_killed_half_way_leaves_the_previous_one_and_takes_little_memory(cell: Any, tmp_path: Path) -> None:
    made = cell.table(max_items=20_000, rows=[("observation", "<f4", (1_000,))])
    made.insert(20_000)
    script, path = tmp_path / "exporting.py", tmp_path / "replay.rows"
    script.write_text(EXPORTING)
    command = [sys.executable, str(script), str(cell.address), made.id, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    grown_bytes = int(done.stdout.split()[-1])
    size = path.stat().st_size
    assert size > 80_000_000
    assert grown_bytes < size / 2, "a slice of the rows at a time"
    before = path.read_bytes()

    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    end_s = CLOCK.monotonic_s() + 30.0
    while not (half := [each for each in tmp_path.glob(".replay.rows.*") if each.stat().st_size > size / 4]):
        assert process.poll() is None
        assert CLOCK.monotonic_s() < end_s
    process.kill()
    process.wait(timeout=10)
    assert half[0].stat().st_size < size
    assert path.read_bytes() == before, "the previous one is as it was"

    there = cell.nobody(max_items=20_000, rows=[("observation", "<f4", (1_000,))])
    with pytest.raises(SchemaMismatch, match="was not written to the end|is cut off|half"):
        there.client.restore_from(half[0])
    assert there.client.restore_from(path) == 20_000
    assert len(there.client.sample(batch_items=32)) == 32


def test_o24_writers_that_died_hold_nobody_up_and_old_versions_are_dropped_after_a_restore(cell: Any, tmp_path: Path) -> None:
    made = cell.table(limiter={"kind": "sample_to_insert_ratio", "samples_per_insert": 1, "min_items": 8, "tolerance_items": 400})
    step = {"observation": np.zeros((2, 2), np.float32), "reward": np.zeros(2, np.float32)}
    writers = [made.writer(NStep(3), environments=2) for _ in range(8)]
    for version in range(6):
        for number, writer in enumerate(writers):
            if number < 3 and version >= 2:
                continue  # died, in the middle of their windows
            for _ in range(4):
                writer.append(step, version=version)
            writer.flush(deadline_s=10.0)
    told = made.client.describe()
    assert told["entries_waiting"] == 0
    assert told["writers"] == 8
    made.client.export_to(tmp_path / "replay.rows")
    restored = cell.nobody()
    count = restored.client.restore_from(tmp_path / "replay.rows", changes={"max_lag_versions": 1})
    told = restored.client.describe()
    assert count == told["items"]
    sample = restored.client.sample(batch_items=256, deadline_s=10.0)
    assert set(sample.version.tolist()) <= {4, 5}
    assert told["gated"] == count - told["sampleable"] > 0
    assert set(made.client.sample(batch_items=256, deadline_s=10.0).version.tolist()) >= {0, 5}
