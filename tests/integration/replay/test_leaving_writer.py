"""A writer that has to go does not wait for a table that is full: what it has is written. One that stays waits for memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from rollstream.clock import SystemClock
from rollstream.metrics import Waits
from rollstream.replay import EachRow, TableWriter
from rollstream.replay.log import decode_insert
from rollstream.store import Address, Store, keys
from rollstream_actor.sink import PatientSink
from rollstream_service.health import Health
from rollstream_service.lifecycle import Life

CLOCK = SystemClock()


@pytest.fixture
def writer(store: Store, address: Address, spec: Callable[..., Any], table_id: str) -> Iterator[TableWriter]:
    """A writer whose table takes one unread flush, and nobody reads."""
    one = spec(unread_entries=1)
    store.run("make the table", lambda client: client.hset(keys.tables(), table_id, one.model_dump_json()))
    made = TableWriter(store, address, table_id=table_id, spec=one, rule=EachRow(), environments=2, clock=CLOCK)
    yield made
    made.close()


def test_the_last_rollout_of_an_actor_that_is_told_to_stop_goes_beyond_the_bound(
    writer: TableWriter, store: Store, table_id: str, episodic: Any
) -> None:
    life = Life(role="actor", member="actor-0", clock=CLOCK, health=Health(CLOCK), log=structlog.get_logger("rollstream"))
    wanted = [True]
    sink = PatientSink(writer, life=life, waits=Waits(clock=CLOCK), table="replay", wanted=lambda: wanted[0])
    episodes = episodic(2, episode_steps=5)
    sink.append(episodes.rollout(4))
    assert not sink.has_room()
    wanted[0] = False
    result = sink.append(episodes.rollout(4))
    assert (result.rows, result.waited_s) == (8, 0.0)
    writer.settle()
    assert store.run("count", lambda client: client.xlen(keys.table_log(table_id, 0))) == 2


def test_an_actor_waits_as_long_as_redis_is_full_and_writes_every_rollout_once(
    store: Store, address: Address, spec: Callable[..., Any], table_id: str, episodic: Any
) -> None:
    table = spec(unread_entries=100)
    store.run("make the table", lambda client: client.hset(keys.tables(), table_id, table.model_dump_json()))
    waits = Waits(clock=CLOCK)
    writer = TableWriter(store, address, table_id=table_id, spec=table, rule=EachRow(), environments=2, clock=CLOCK, waits=waits)
    life = Life(role="actor", member="actor-0", clock=CLOCK, health=Health(CLOCK), log=structlog.get_logger("rollstream"))
    sink = PatientSink(writer, life=life, waits=waits, table="replay", wanted=lambda: True)
    episodes = episodic(2, episode_steps=50)
    sink.append(episodes.rollout(4))
    writer.settle()
    store.client.config_set("maxmemory", "1")
    lift = threading.Timer(2.5, lambda: store.client.config_set("maxmemory", "0"))
    lift.start()
    try:
        for _ in range(3):
            sink.append(episodes.rollout(4))
    finally:
        lift.join()
        store.client.config_set("maxmemory", "0")
    sink.close()
    entries = store.run("read the log", lambda client: client.xrange(keys.table_log(table_id, 0)))
    ends = [decode_insert(fields[b"i"]).end.tolist() for _, fields in entries]
    assert ends == [[4, 4], [8, 8], [12, 12], [16, 16], [17, 17]]
    assert any("Redis is out of memory" in total.for_whom for total in waits.totals())
