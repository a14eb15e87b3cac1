"""Tables and entries for the replay cases, and a replay service in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import structlog

from rollstream.clock import SystemClock
from rollstream.replay import EachRow, Table, TableClient, TableSpec, TableWriter
from rollstream.replay.log import InsertEntry
from rollstream.spaces import Column, Episodes, Flag, Rollout, RowSpec
from rollstream.store import Address, Store
from rollstream_replay.settings import ReplaySettings
from rollstream_replay.wiring import main
from rollstream_service.health import Health
from rollstream_service.lifecycle import Life

ROWS = RowSpec((Column(name="observation", dtype="<f4", shape=(2,)), Column(name="reward", dtype="<f4")))
TABLE = "run-abc123.replay"


def make_spec(**changes: Any) -> TableSpec:
    return TableSpec.model_validate({"name": "replay", "max_items": 1000, "rows": ROWS, **changes})


def insert(table: Table, priorities: list[float], *, writer: int = 1) -> np.ndarray:
    """Insert single-row items with these priorities; returns their keys."""
    streams = table.streams.get(writer)
    first = int(streams.end[0]) if streams else 0
    count = len(priorities)
    entry = InsertEntry(
        writer=writer,
        sequence=streams.sequence + 1 if streams else 1,
        default_priority=False,
        keep=np.array([first + count], np.uint64),
        end=np.array([first + count], np.uint64),
        start=np.arange(first, first + count, dtype=np.uint64),
        env=np.zeros(count, np.uint32),
        length=np.ones(count, np.uint32),
        priority=np.array(priorities, np.float32),
    )
    assert table.begin(entry)
    assert table.admit() == count
    return table.items.keys(table.items.live()[-count:])


@pytest.fixture
def table() -> Callable[..., Table]:
    """Makes a table shard without a server."""
    return lambda **changes: Table(make_spec(**changes), seed=3)


@pytest.fixture(name="insert")
def insert_items() -> Callable[..., np.ndarray]:
    return insert


class Service:
    """A replay service with one table, its client, and writers of single-row items with two environments."""

    def __init__(self, store: Store, address: Address) -> None:
        self.store, self.address, self.spec = store, address, make_spec()
        clock = SystemClock()
        self.life = Life(
            role="replay", member="replay-0", clock=clock, health=Health(clock), log=structlog.get_logger("rollstream")
        )
        settings = ReplaySettings(redis_url=str(address), member_id="replay-0", grace_s=5.0)
        self._thread = threading.Thread(target=main, args=(settings, self.life), name="replay-0")
        self._thread.start()
        self.client = TableClient(store, address, table_id=TABLE, clock=clock)

    def create(self, **changes: Any) -> None:
        self.spec = make_spec(**changes)
        self.client.create(self.spec)

    def writer(self) -> TableWriter:
        return TableWriter(
            self.store, self.address, table_id=TABLE, spec=self.spec, rule=EachRow(), environments=2, clock=SystemClock()
        )

    def rollout(self, rows: int) -> Rollout:
        packed = np.zeros((2, rows), ROWS.dtype)
        packed["flags"][:, 0] = Flag.FIRST
        packed["observation"][..., 0] = np.arange(rows)
        return Rollout(
            rows=packed.reshape(-1),
            offsets=np.arange(3, dtype=np.int64) * rows,
            next_observation={},
            version=1,
            env_steps=2 * rows,
            episodes=Episodes(),
        )

    def stop(self) -> None:
        self.client.close()
        self.life.stopping.set()
        self._thread.join(timeout=30)
        assert not self._thread.is_alive()


@pytest.fixture
def service(store: Store, address: Address) -> Iterator[Service]:
    made = Service(store, address)
    yield made
    made.stop()
