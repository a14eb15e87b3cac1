"""Real processes, killed while writers write and a client samples: every acknowledged item is there exactly once."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import DeadlineExceeded, StoreError
from rollstream.replay import EachRow, NStep, Prioritized, TableClient, TableSpec, TableWriter
from rollstream.replay.packed import unpack
from rollstream.store import Address, EmbeddedServer, Store, chunk_prefix

CLOCK = SystemClock()
LOG = logging.getLogger("rollstream.tests")


class Writing:
    """A writer in a thread of its own: notes the keys that it was given, and those that were admitted before a `flush` ended."""

    def __init__(self, store: Store, address: Address, spec: TableSpec, source: Any, *, table_id: str, rule: Any) -> None:
        self._writer = TableWriter(
            store,
            address,
            table_id=table_id,
            spec=spec,
            rule=rule,
            environments=source.environments,
            clock=CLOCK,
            deadline_s=60.0,
        )
        self._source = source
        self._ended = threading.Event()
        self.keys: list[np.ndarray] = []
        self.admitted = 0
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        try:
            while not self._ended.is_set():
                self._append()
                if len(self.keys) % 8 == 0:
                    self._writer.flush(deadline_s=60.0)
                    self.admitted = len(self.keys)
            self._writer.flush(deadline_s=60.0)
            self.admitted = len(self.keys)
        except BaseException as error:
            self.error = error

    def _append(self) -> None:
        rollout = self._source.rollout(8)
        for _ in range(20):
            try:
                self.keys.append(self._writer.append(rollout).keys["replay"])
            except StoreError:
                CLOCK.sleep(0.1)  # the same rollout again: it is written once
            else:
                return
        raise AssertionError("Redis did not come back")

    def end(self) -> np.ndarray:
        """Stop, and give all keys."""
        self._ended.set()
        self._thread.join(timeout=120)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return np.concatenate(self.keys)


class Sampling:
    """A client that samples in a thread of its own, and returns priorities."""

    def __init__(self, client: TableClient) -> None:
        self._client = client
        self._ended = threading.Event()
        self.batches = 0
        self.longest_s = 0.0
        self.errors: list[str] = []
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while not self._ended.is_set():
            began_s = CLOCK.monotonic_s()
            try:
                sample = self._client.sample(batch_items=16, deadline_s=30.0)
                assert (sample.rows["observation"][:, 0, 0] == sample.rows["reward"][:, 0]).all()
                self._client.update_priorities(sample.keys, np.abs(sample.rows["reward"][:, 0]) + 1.0)
            except (DeadlineExceeded, StoreError) as error:
                self.errors.append(str(error))
            else:
                self.batches += 1
            self.longest_s = max(self.longest_s, CLOCK.monotonic_s() - began_s)

    def end(self) -> None:
        self._ended.set()
        self._thread.join(timeout=60)
        assert not self._thread.is_alive()


def keys_in(client: TableClient) -> list[int]:
    """All keys that the table has now."""
    link = client._shards.links(deadline_s=30.0)[0]
    body = link.request("GET", f"{client._shards.path}/snapshot", deadline_s=30.0)
    found: list[int] = unpack(bytes(body), what="index").arrays["key"].tolist()
    return found


def test_a_shard_killed_again_and_again_loses_nothing_and_doubles_nothing(
    *,
    replay_process: Any,
    client: TableClient,
    spec: Any,
    episodic: Any,
    store: Store,
    address: Address,
    table_id: str,
    ask: Any,
) -> None:
    process = replay_process()
    made = spec(max_items=1_000_000, sampler=Prioritized(exponent=0.5))
    client.create(made)
    writers = [
        Writing(store, address, made, episodic(4, episode_steps=13), table_id=table_id, rule=rule)
        for rule in (EachRow(), NStep(3))
    ]
    sampling = Sampling(client)
    away_s: list[float] = []
    for _ in range(4):
        CLOCK.sleep(0.7)
        ask("POST", f"/{table_id}/snapshot")
        CLOCK.sleep(0.3)
        process.kill()
        began_s = CLOCK.monotonic_s()
        process.start()
        assert ask("GET", f"/{table_id}").status == 200
        away_s.append(CLOCK.monotonic_s() - began_s)
    CLOCK.sleep(1.0)
    written = np.concatenate([writer.end() for writer in writers])
    sampling.end()
    assert not sampling.errors
    there = keys_in(client)
    assert len(there) == len(set(there))
    assert sorted(there) == sorted(written.tolist())
    assert client.rows_missing == 0
    assert sampling.batches > 20
    told = client.describe()
    assert (told["items_without_rows"], told["entries_refused"]) == (0, 0)
    LOG.info("%d items, %d batches, longest wait %.2f s, away %s", len(there), sampling.batches, sampling.longest_s, away_s)


@pytest.fixture
def own_server(tmp_path: Path, server_binary: Path | None) -> Iterator[EmbeddedServer]:
    """A server that a test may kill."""
    made = EmbeddedServer(tmp_path / "server", clock=CLOCK, binary=server_binary)
    made.start()
    yield made
    made.stop()


def test_redis_killed_under_writing_loses_at_most_its_last_second_and_no_item_lacks_its_rows(
    *, own_server: EmbeddedServer, replay_process: Any, spec: Any, episodic: Any, table_id: str, eventually: Any
) -> None:
    address = own_server.address
    store = Store(address, clock=CLOCK, deadline_s=30.0)
    process = replay_process(ROLLSTREAM_REDIS_URL=str(address))
    client = TableClient(store, address, table_id=table_id, clock=CLOCK)
    made = spec(max_items=1_000_000, sampler=Prioritized(exponent=0.5))
    client.create(made)
    sources = [episodic(4, episode_steps=13) for _ in range(2)]
    writers = [Writing(store, address, made, source, table_id=table_id, rule=EachRow()) for source in sources]
    sampling = Sampling(client)
    acknowledged: list[list[int]] = []
    for _ in range(2):
        CLOCK.sleep(2.5)
        acknowledged.append([sum(map(len, writer.keys[: writer.admitted])) for writer in writers])
        CLOCK.sleep(2.5)  # the file is synced each second
        os.kill(own_server.pid, signal.SIGKILL)
        psutil.Process(own_server.pid).wait(timeout=10)
        own_server.start()
    CLOCK.sleep(2.0)
    written = [writer.end() for writer in writers]
    sampling.end()
    there = keys_in(client)
    assert len(there) == len(set(there))
    assert set(there) <= set(np.concatenate(written).tolist())
    for number, keys in enumerate(written):
        safe = keys[: acknowledged[0][number]].tolist()
        assert set(safe) <= set(there), "what was acknowledged seconds before is kept"
    assert len(there) > 0.5 * sum(map(len, written))
    stored = set(store.client.scan_iter(chunk_prefix(table_id, 0) + b"*", count=10_000))
    for begin in range(0, len(there), 4096):
        part = client.get(np.array(there[begin : begin + 4096], np.uint64))
        assert (part.rows["observation"][:, 0, 0] == part.rows["reward"][:, 0]).all()
    assert len(stored) >= len(there)
    assert process.process.poll() is None or process.process.returncode == 0
    LOG.info(
        "%d of %d items are there, %d batches, the longest wait %.2f s, errors: %s",
        len(there),
        sum(map(len, written)),
        sampling.batches,
        sampling.longest_s,
        sampling.errors[:2],
    )
    client.close()
    store.close()
