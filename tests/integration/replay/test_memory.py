"""Memory stays within the documented formula, however often a table turns over, and a full Redis is back-pressure."""

from __future__ import annotations

import logging
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import pytest

from rollstream.clock import SystemClock
from rollstream.metrics import Waits
from rollstream.replay import (
    EachRow,
    Fifo,
    LocalReplay,
    MinHeap,
    Prioritized,
    TableClient,
    TableGroup,
    TableSpec,
    TableWriter,
    Uniform,
)
from rollstream.replay.log import InsertEntry, UpdateEntry
from rollstream.replay.table_memory import SHARD_WORKING_BYTES
from rollstream.store import Address, Store

CLOCK = SystemClock()
LOG = logging.getLogger("rollstream.tests")
ENVIRONMENTS = 4


@dataclass
class Peaks:
    """What was used at most, above what was used before."""

    redis_bytes: int = 0
    shard_bytes: int = 0


@pytest.fixture
def watched(store: Store, address: Address) -> Callable[..., Any]:
    """Measures both while something runs."""

    @contextmanager
    def watching(process: psutil.Process) -> Iterator[Peaks]:
        peaks, ended = Peaks(), threading.Event()
        own = Store(address, clock=CLOCK)
        redis_before, shard_before = own.client.info("memory")["used_memory"], process.memory_info().rss

        def look() -> None:
            while not ended.wait(0.01):
                peaks.redis_bytes = max(peaks.redis_bytes, own.client.info("memory")["used_memory"] - redis_before)
                peaks.shard_bytes = max(peaks.shard_bytes, process.memory_info().rss - shard_before)

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield peaks
        finally:
            ended.set()
            thread.join()
            own.close()

    return watching


@pytest.fixture
def write(store: Store, address: Address, table_id: str) -> Callable[..., TableWriter]:
    def make(spec: TableSpec, **more: Any) -> TableWriter:
        settings = {
            "rule": EachRow(),
            "environments": ENVIRONMENTS,
            "clock": CLOCK,
            "deadline_s": 20.0,
            "table_id": table_id,
            **more,
        }
        return TableWriter(store, address, spec=spec, **settings)

    return make


def make_rows(spec: TableSpec, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Random rows of all environments, which do not compress."""
    made = np.random.default_rng(rows).integers(0, 255, (ENVIRONMENTS * rows, spec.row_spec.row_bytes), np.uint8)
    packed = made.reshape(-1).view(spec.row_spec.dtype)
    packed["flags"], packed["version"] = 0, 1
    return packed, np.arange(ENVIRONMENTS + 1) * rows


@pytest.mark.parametrize(
    ("max_items", "row", "rows_a_flush"),
    [(30_000, ("<f4", [100]), 256), (100_000, ("<f4", [2]), 1024), (300, ("|u1", [84, 84, 4]), 4)],
    ids=["400 B", "8 B", "frames"],
)
def test_redis_and_shard_stay_within_the_formula_while_a_table_turns_over_ten_times(
    *,
    replay_process: Any,
    client: Any,
    watched: Any,
    write: Any,
    spec: Any,
    table_id: str,
    max_items: int,
    row: tuple[str, list[int]],
    rows_a_flush: int,
) -> None:
    made = spec(
        max_items=max_items,
        rows=[("x", *row)],
        sampler=Prioritized(),
        unread_entries=2,
    )
    process = replay_process()
    client.create(made)
    writer, (rows, offsets) = write(made), make_rows(made, rows_a_flush)
    writer.append_rows(rows, offsets)
    client.sample(batch_items=4)
    in_flight_bytes = made.unread_entries * len(rows) * made.chunk_memory_bytes(table_id)
    with watched(psutil.Process(process.process.pid)) as peaks:
        for _ in range(10 * max_items // len(rows)):
            writer.append_rows(rows, offsets)
        writer.flush(deadline_s=30.0)
        assert client.info()["items"] == max_items
    redis_bytes = made.predicted_bytes(table_id) + in_flight_bytes
    shard_bytes = made.predicted_index_bytes() + SHARD_WORKING_BYTES
    LOG.info(
        "redis %.1f of %.1f MB, shard %.1f of %.1f MB",
        *(each / 1e6 for each in (peaks.redis_bytes, redis_bytes, peaks.shard_bytes, shard_bytes)),
    )
    assert peaks.redis_bytes <= 1.2 * redis_bytes
    assert peaks.shard_bytes <= 1.2 * shard_bytes


def test_redis_stays_within_the_formula_while_a_table_in_this_process_turns_over_ten_times(
    *, watched: Any, spec: Any, store: Store, address: Address
) -> None:
    made = spec(max_items=30_000, rows=[("x", "<f4", [100])], unread_entries=2)
    with LocalReplay(store=store, address=address, tables=[made]) as replay:
        writer, (rows, offsets) = replay.writer("replay", EachRow(), environments=ENVIRONMENTS), make_rows(made, 256)
        with watched(psutil.Process()) as peaks:
            for _ in range(300):
                writer.append_rows(rows, offsets)
            writer.flush(deadline_s=30.0)
        writer.close()
        assert replay.client("replay").info()["items"] == 30_000
    in_flight_bytes = made.unread_entries * len(rows) * made.chunk_memory_bytes("local.replay")
    assert peaks.redis_bytes <= 1.2 * (made.predicted_bytes("local.replay") + in_flight_bytes)


@pytest.mark.parametrize(
    ("sampler", "remover", "growth"),
    [(Prioritized(), Fifo(), 1.05), (Uniform(), Uniform(), 1.05), (Prioritized(), MinHeap(), 1.1)],
    ids=["fifo", "uniform", "min_heap"],  # the last keeps ever fewer items of an episode, and so ever more episodes
)
def test_the_index_does_not_grow_over_ten_million_inserts(spec: Any, sampler: Any, remover: Any, growth: float) -> None:
    tracemalloc.start()  # what this process freed before would hide growth from its resident size
    group = TableGroup(spec(max_items=50_000, sampler=sampler, remover=remover), seed=1)
    process, batch, rss_bytes, held_bytes = psutil.Process(), 20_000, {}, {}
    row = np.arange(batch, dtype=np.uint64)
    nothing = np.zeros(batch, np.uint32)
    priority = np.random.default_rng(0).random(batch, np.float32)
    for sequence in range(500):
        first = np.uint64(sequence * batch)
        entry = InsertEntry(
            writer=1,
            sequence=sequence + 1,
            keep=np.array([first + np.uint64(batch)], np.uint64),
            end=np.array([first + np.uint64(batch)], np.uint64),
            start=row + first,
            env=nothing,
            length=nothing + np.uint32(1),
            version=nothing,
            episode_env=nothing[:100],
            episode_start=row[::200] + first,
            first_ordinal=int(first),
            priority=priority if remover.kind == "min_heap" else None,
        )
        assert group.begin(entry)
        group.admit()
        group.take_garbage()
        drawn = group.primary.sample(256)
        group.update(UpdateEntry(keys=drawn.keys, priority=np.linspace(0, 2, 256, dtype=np.float32)))
        if sequence in (99, 499):
            rss_bytes[sequence] = process.memory_info().rss
            held_bytes[sequence] = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    LOG.info("%.1f MB after 2e6, %.1f MB after 1e7", held_bytes[99] / 1e6, held_bytes[499] / 1e6)
    assert group.primary.limiter.inserted == 10_000_000
    assert rss_bytes[499] < 1.05 * rss_bytes[99]
    assert held_bytes[499] < growth * held_bytes[99]
    assert held_bytes[499] < group.primary.spec.predicted_index_bytes()


@pytest.fixture
def limited(store: Store) -> Iterator[Callable[[int], None]]:
    """Sets how many bytes more Redis may use than now."""

    def limit(more_bytes: int) -> None:
        store.client.config_set("maxmemory", store.client.info("memory")["used_memory"] + more_bytes)

    yield limit
    store.client.config_set("maxmemory", "0")


@pytest.mark.parametrize("relief", ["samplers use items up", "maxmemory is raised", "another table is dropped"])
def test_a_writer_waits_by_name_while_redis_is_full_and_nothing_is_lost_or_doubled(
    *,
    replay_process: Any,
    client: Any,
    write: Any,
    spec: Any,
    limited: Any,
    store: Store,
    address: Address,
    eventually: Any,
    relief: str,
) -> None:
    made = spec(max_items=100_000, rows=[("x", "<f4", [250])], max_times_sampled=1, sampler=Fifo())
    process = replay_process()
    client.create(made)
    other = TableClient(store, address, table_id="run-def456.other", clock=CLOCK)
    other.create(made)
    writer, (rows, offsets) = write(made, table_id="run-def456.other"), make_rows(made, 16)
    for _ in range(60):
        writer.append_rows(rows, offsets)
    writer.flush(deadline_s=30.0)
    waits = Waits(CLOCK)
    writer = write(made, waits=waits, deadline_s=60.0)
    written: list[np.ndarray] = []
    limited(2 << 20)

    def work() -> None:
        for _ in range(80):
            written.append(writer.append_rows(rows.copy(), offsets).keys["replay"])
        writer.flush(deadline_s=60.0)

    thread = threading.Thread(target=work)
    thread.start()
    seen: list[np.ndarray] = []
    try:
        told = eventually(lambda: [each for each in waits.now(at_least_s=0.3) if "memory" in each.for_whom])
        assert f"writer {writer.writer_id}" in told[0].who
        before = len(written)
        CLOCK.sleep(1.5)  # longer than the shard's lease
        assert process.process.poll() is None
        assert len(written) - before <= 1
        if relief == "maxmemory is raised":
            store.client.config_set("maxmemory", "0")
        elif relief == "another table is dropped":
            other.drop()
        while relief == "samplers use items up" and thread.is_alive():
            if client.can_sample(batch_items=32):
                seen.append(client.sample(batch_items=32).keys)
    finally:
        store.client.config_set("maxmemory", "0")
    thread.join(timeout=60.0)
    assert not thread.is_alive()
    all_keys = np.concatenate(written)
    assert len(all_keys) == len(set(all_keys.tolist())) == 80 * 64
    if relief == "samplers use items up":
        rest = client.info()["items"]
        seen += [client.sample(batch_items=int(rest)).keys] if rest else []
        assert np.concatenate(seen).tolist() == all_keys.tolist(), "in the order in which they were written, each once"
    else:
        assert client.info()["items"] == len(all_keys)
        assert client.known(all_keys).all()
    assert client.rows_missing == 0
    assert process.process.poll() is None
    other.close()
