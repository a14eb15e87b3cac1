"""A writer that has to go does not wait for a table that is full: what it has is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from rollstream.clock import SystemClock
from rollstream.metrics import Waits
from rollstream.replay import EachRow, TableWriter
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
