"""The simple form, `rollstream bench replay --payload-bytes 400`: items per second through the whole path, by one writer and one sampler.

    insert   rows in memory ─▶ MSET + log ─▶ shard reads, admits, acknowledges          (done when all is admitted)
    sample   HTTP: which items ─▶ MGET of their rows ─▶ arrays                          (batch after batch)

It starts its own embedded server and its own replay service as processes. Besides rates it tells the CPU seconds that each of the
three processes spent per million items, which is what a busy machine does not change.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rollstream.clock import Clock, SystemClock
from rollstream.replay import EachRow, NStep, Prioritized, TableClient, TableSpec, TableWriter, Uniform
from rollstream.spaces import Column, Episodes, Flag, Rollout, RowSpec
from rollstream.store import EmbeddedServer, Store

__all__ = ["Load", "load_of", "measure"]

TABLE_ID = "bench-000000.replay"
SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is measured: see the options of the command (`options.py`)."""

    payload_bytes: int
    batch_items: int
    n_step: int
    environments: int
    rollout_rows: int
    table_items: int
    sampler: str
    ahead_batches: int
    seconds: float
    updates: bool


def load_of(options: argparse.Namespace) -> Load:
    """What the options of the command ask for."""
    return Load(
        payload_bytes=options.payload_bytes[0],
        batch_items=options.batch_items,
        n_step=options.n_step,
        environments=options.environments,
        rollout_rows=options.rollout_rows,
        table_items=options.table_items,
        sampler=options.sampler,
        ahead_batches=options.ahead_batches,
        seconds=options.seconds or SECONDS,
        updates=options.updates,
    )


def measure(load: Load) -> dict[str, Any]:
    """Run the measurements of `load`."""
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="rollstream-bench-") as folder, _processes(Path(folder), clock) as processes:
        rows = RowSpec((Column(name="observation", dtype="|u1", shape=(load.payload_bytes,)), Column(name="reward", dtype="<f4")))
        if load.payload_bytes > 4:
            rows = RowSpec(
                (Column(name="observation", dtype="|u1", shape=(load.payload_bytes - 4,)), Column(name="reward", dtype="<f4"))
            )
        spec = TableSpec(
            name="replay",
            sampler=Prioritized() if load.sampler == "prioritized" else Uniform(),
            max_items=load.table_items,
            rows=rows,  # type: ignore[arg-type]
        )
        store, address = processes.store, processes.server.address
        client = TableClient(store, address, table_id=TABLE_ID, clock=clock)
        client.create(spec, deadline_s=60.0)
        result: dict[str, Any] = {"payload_bytes": load.payload_bytes, "batch_items": load.batch_items, "sampler": load.sampler}
        result |= _insert(load, spec, processes, clock)
        result |= _sample_strictly(load, client, processes, clock)
        client.close()
        ahead = TableClient(store, address, table_id=TABLE_ID, clock=clock, ahead_batches=load.ahead_batches)
        result |= _sample_ahead(load, ahead, processes, clock)
        result["table"] = ahead.info()
        ahead.close()
        result["rss_mb"] = {name: round(process.memory_info().rss / 2**20, 1) for name, process in processes.by_name.items()}
        return result


# --- the three processes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Processes:
    store: Store
    server: EmbeddedServer
    by_name: dict[str, Any]

    def cpu_s(self) -> dict[str, float]:
        return {name: sum(process.cpu_times()[:2]) for name, process in self.by_name.items()}


@contextmanager
def _processes(folder: Path, clock: Clock) -> Iterator[_Processes]:
    import psutil

    with EmbeddedServer(folder / "server", clock=clock) as server:
        environment = {
            **os.environ,
            "ROLLSTREAM_REDIS_URL": str(server.address),
            "ROLLSTREAM_MEMBER_ID": "replay-0",
            "ROLLSTREAM_SHARD": "0",
            "OMP_NUM_THREADS": "1",
        }
        with (folder / "replay.log").open("wb") as log:
            command = [sys.executable, "-m", "rollstream_replay"]
            service = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        store = Store(server.address, clock=clock, name="bench")
        try:
            by_name = {"client": os.getpid(), "replay": service.pid, "redis": server.pid}
            yield _Processes(store=store, server=server, by_name={name: psutil.Process(pid) for name, pid in by_name.items()})
        finally:
            service.terminate()
            try:
                service.wait(timeout=20.0)
            except subprocess.TimeoutExpired:
                service.kill()
                service.wait()
            store.close()


@contextmanager
def _cpu(processes: _Processes, result: dict[str, Any], name: str, count: list[int]) -> Iterator[None]:
    before = processes.cpu_s()
    yield
    after = processes.cpu_s()
    result[name] = {process: round(1e6 * (after[process] - before[process]) / max(1, count[0]), 3) for process in before}


# --- measurements --------------------------------------------------------------------------------------------------------


def _insert(load: Load, spec: TableSpec, processes: _Processes, clock: Clock) -> dict[str, Any]:
    rule = NStep(load.n_step) if load.n_step else EachRow()
    writer = TableWriter(
        processes.store,
        processes.server.address,
        table_id=TABLE_ID,
        spec=spec,
        rule=rule,
        environments=load.environments,
        clock=clock,
    )
    rollout = _rollout(load, spec)
    for _ in range(5):
        writer.append(rollout)
    writer.flush(deadline_s=30.0)
    result: dict[str, Any] = {}
    count = [0]
    with _cpu(processes, result, "insert_cpu_us_per_item", count):
        began_s = clock.monotonic_s()
        while clock.monotonic_s() - began_s < load.seconds:
            count[0] += writer.append(rollout).items
        writer.flush(deadline_s=30.0)
        elapsed_s = clock.monotonic_s() - began_s
    writer.close()
    return {"insert_items_per_s": round(count[0] / elapsed_s), "items_inserted": count[0], **result}


def _rollout(load: Load, spec: TableSpec) -> Rollout:
    rows = np.zeros((load.environments, load.rollout_rows), spec.row_spec.dtype)
    pattern = np.arange(rows["observation"].size, dtype=np.int64) % 251
    rows["observation"] = pattern.reshape(rows["observation"].shape).astype(np.uint8)
    rows["flags"][:, 0] = Flag.FIRST
    if load.n_step:
        rows["flags"][:, -1] = Flag.FINAL | Flag.TERMINATED
    return Rollout(
        rows=rows.reshape(-1),
        offsets=np.arange(load.environments + 1, dtype=np.int64) * load.rollout_rows,
        next_observation={},
        version=1,
        env_steps=rows.size,
        episodes=Episodes(),
    )


def _sample_strictly(load: Load, client: TableClient, processes: _Processes, clock: Clock) -> dict[str, Any]:
    """One batch at a time, drawn at the time of the call: latency."""
    times_s = _sample(load, client, clock)
    milliseconds = 1e3 * np.sort(np.array(times_s))
    return {
        "sample_batch_p50_ms": round(float(np.quantile(milliseconds, 0.5)), 3),
        "sample_batch_p99_ms": round(float(np.quantile(milliseconds, 0.99)), 3),
        "sample_items_per_s_strict": round(len(times_s) * load.batch_items / sum(times_s)),
    }


def _sample_ahead(load: Load, client: TableClient, processes: _Processes, clock: Clock) -> dict[str, Any]:
    """Batches asked for ahead: throughput."""
    result: dict[str, Any] = {}
    count = [0]
    with _cpu(processes, result, "sample_cpu_us_per_item", count):
        times_s = _sample(load, client, clock)
        count[0] = len(times_s) * load.batch_items
    return {"sample_items_per_s": round(count[0] / sum(times_s)), **result}


def _sample(load: Load, client: TableClient, clock: Clock) -> list[float]:
    for _ in range(20):
        client.sample(batch_items=load.batch_items, deadline_s=30.0)
    times_s: list[float] = []
    began_s = now_s = clock.monotonic_s()
    while now_s - began_s < load.seconds:
        sample = client.sample(batch_items=load.batch_items, deadline_s=30.0)
        if load.updates:
            client.update_priorities(sample.keys, sample.probability)
        before_s, now_s = now_s, clock.monotonic_s()
        times_s.append(now_s - before_s)
    return times_s
