"""Shards that die, come back, move, or meet a second one: nothing is lost, nothing is served twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import DeadlineExceeded, TableError
from rollstream.replay import EachRow, NStep, Prioritized, SampleToInsertRatio, TableClient, TableWriter
from rollstream.store import Address, EmbeddedServer, Members, Store, keys


@pytest.fixture
def write(store: Store, address: Address, spec: Callable[..., Any], table_id: str) -> Callable[..., TableWriter]:
    def make(rule: Any = None, *, table_spec: Any = None) -> TableWriter:
        return TableWriter(
            store,
            address,
            table_id=table_id,
            spec=table_spec or spec(),
            rule=rule or NStep(3),
            environments=4,
            clock=SystemClock(),
            deadline_s=20.0,
        )

    return make


def test_a_killed_shard_comes_back_with_every_item_and_priority(
    replay_process: Any, client: TableClient, write: Any, spec: Any, episodic: Any
) -> None:
    process = replay_process()
    client.create(spec(sampler=Prioritized()))
    writer, source = write(), episodic(4, episode_steps=7)
    for _ in range(5):
        writer.append(source.rollout(16))
    writer.flush(deadline_s=10)
    sample = client.sample(batch_items=8, deadline_s=10)
    client.update_priorities(sample.keys, np.linspace(2, 3, 8))
    _wait_until(lambda: client.info()["priorities_updated"] > 0)
    before = client.items(order="oldest", limit=1000)
    process.kill()
    known = client.info()
    assert known["items"] == len(before), "while the shard is away, the last numbers are told"
    assert not client.can_sample(batch_items=1)
    writer.append(source.rollout(16))
    process.start()
    writer.append(source.rollout(16))
    writer.flush(deadline_s=20)
    after = client.items(order="oldest", limit=1000)
    assert [(item["key"], item["priority"]) for item in after[: len(before)]] == [
        (item["key"], item["priority"]) for item in before
    ]
    assert len(after) == len(before) + 2 * 56
    assert client.sample(batch_items=64, deadline_s=10).rows["flags"].shape[0] == 64


def test_what_was_admitted_before_the_crash_is_admitted_again_and_no_more(
    replay_process: Any, client: TableClient, write: Any, spec: Any, episodic: Any
) -> None:
    table_spec = spec(limiter=SampleToInsertRatio(samples_per_insert=2.0, min_items=10, tolerance_items=40))
    process = replay_process()
    client.create(table_spec)
    writer, source = write(EachRow(), table_spec=table_spec), episodic(4, episode_steps=1000)
    for _ in range(3):
        writer.append(source.rollout(16))
    _wait_until(lambda: client.info()["entries_waiting"] == 3)
    client.sample(batch_items=30, deadline_s=10)
    _wait_until(lambda: client.info()["inserted"] == 45)
    _settle()
    process.kill()
    process.start()
    info = client.info(deadline_s=30)
    assert (info["inserted"], info["sampled"], info["entries_waiting"]) == (45, 30, 3)


def test_a_snapshot_trims_the_log_and_is_recovered_from(
    *,
    replay_process: Any,
    client: TableClient,
    write: Any,
    spec: Any,
    episodic: Any,
    store: Store,
    table_id: str,
    members: Members,
) -> None:
    process = replay_process()
    client.create(spec(sampler=Prioritized()))
    writer, source = write(), episodic(4, episode_steps=7)
    for _ in range(5):
        writer.append(source.rollout(16))
    writer.flush(deadline_s=10)
    assert process.terminate() == 0  # a shard that stops in good order leaves a snapshot
    log = keys.table_log(table_id, 0)
    assert store.run("look", lambda redis: redis.xlen(log)) == 0
    process.start()
    assert client.info(deadline_s=30)["items"] == 280
    writer.append(source.rollout(16))
    writer.flush(deadline_s=10)
    process.kill()
    process.start()
    info = client.info(deadline_s=20)
    assert (info["items"], info["items_without_rows"], info["inserted"]) == (336, 0, 336)
    client.sample(batch_items=256, deadline_s=10)
    assert client.rows_missing == 0


def test_a_lost_snapshot_is_noticed_and_its_rows_are_swept(
    *, replay_process: Any, client: TableClient, write: Any, spec: Any, episodic: Any, store: Store, table_id: str
) -> None:
    process = replay_process()
    client.create(spec())
    writer, source = write(EachRow()), episodic(4, episode_steps=7)
    writer.append(source.rollout(16))
    writer.flush(deadline_s=10)
    assert process.terminate() == 0
    store.run("lose the snapshot", lambda redis: redis.unlink(keys.table_snapshot(table_id, 0)))
    process.start()
    assert client.info(deadline_s=30)["items"] == 0
    writer.append(source.rollout(16))
    writer.flush(deadline_s=10)
    assert client.info()["items"] == 56
    client.sample(batch_items=64, deadline_s=10)
    assert client.rows_missing == 0
    assert process.terminate() == 0
    assert any("snapshot 1 is lost" in str(line["event"]) for line in process.log_lines())


def test_a_second_process_waits_until_the_first_is_gone(
    *, replay_process: Any, client: TableClient, write: Any, spec: Any, episodic: Any, members: Members
) -> None:
    first = replay_process("replay-a")
    client.create(spec())
    replay_process("replay-b")
    _wait_until(lambda: len(members.list()) == 2)
    records = {record.id: record for record in members.list()}
    assert not records["replay-b"].ready
    direct = TableClient(
        client._store, client._address, table_id=client.table_id, clock=SystemClock(), locate=lambda: records["replay-b"].url
    )
    _wait_until(lambda: "is not serving: standing by, the shard belongs to replay-a" in _refusal(direct))
    writer = write()
    writer.append(episodic(4, episode_steps=7).rollout(16))
    first.kill()
    writer.flush(deadline_s=20)
    assert client.info(deadline_s=20)["items"] == 56
    direct.close()


def test_a_process_of_the_same_name_takes_over_at_once(
    *, replay_process: Any, client: TableClient, write: Any, spec: Any, episodic: Any
) -> None:
    process = replay_process("replay-a", ROLLSTREAM_LEASE_TTL_S="600")
    client.create(spec())
    writer = write()
    writer.append(episodic(4, episode_steps=7).rollout(16))
    writer.flush(deadline_s=10)
    process.kill()
    process.start()
    assert client.info(deadline_s=30)["items"] == 56


def test_a_paused_owner_stops_serving_when_its_lease_has_run_out(
    replay_process: Any, client: TableClient, spec: Any, members: Members
) -> None:
    import signal

    first = replay_process("replay-a")
    client.create(spec())
    url = members.list()[0].url
    first.process.send_signal(signal.SIGSTOP)
    replay_process("replay-b")
    _wait_until(lambda: any(record.id == "replay-b" and record.ready for record in members.list()))
    first.process.send_signal(signal.SIGCONT)
    direct = TableClient(client._store, client._address, table_id=client.table_id, clock=SystemClock(), locate=lambda: url)
    with pytest.raises(DeadlineExceeded, match="is not serving"):
        direct.info(deadline_s=0.3)
    direct.close()


def test_redis_restarting_is_survived(
    *, replay_process: Any, client: TableClient, write: Any, spec: Any, episodic: Any, server: EmbeddedServer
) -> None:
    replay_process()
    client.create(spec())
    writer, source = write(EachRow()), episodic(4, episode_steps=1000)
    writer.append(source.rollout(16))
    writer.flush(deadline_s=10)
    server.restart()
    writer.append(source.rollout(16))
    writer.flush(deadline_s=20)
    assert client.info(deadline_s=20)["items"] == 128
    assert len(client.sample(batch_items=64, deadline_s=20).keys) == 64


def test_a_table_is_restored_into_an_empty_redis_with_its_rows(
    *, replay_process: Any, client: TableClient, write: Any, spec: Any, episodic: Any, store: Store, address: Address
) -> None:
    process = replay_process()
    limiter = SampleToInsertRatio(samples_per_insert=4.0, min_items=10, tolerance_items=2000)
    table_spec = spec(sampler=Prioritized(), limiter=limiter)
    client.create(table_spec)
    writer, source = write(table_spec=table_spec), episodic(4, episode_steps=7)
    for _ in range(5):
        writer.append(source.rollout(16))
    writer.flush(deadline_s=10)
    for _ in range(10):
        client.sample(batch_items=64, deadline_s=10)
    exported = client.export(rows_max_bytes=1 << 20)
    original = client.items(order="newest", limit=1000)
    process.terminate()
    client.close()
    store.run("empty Redis", lambda redis: redis.flushall())
    process.start()
    fresh = TableClient(store, address, table_id=client.table_id, clock=SystemClock())
    fresh.create(table_spec)
    assert fresh.restore(exported) == 280
    restored = fresh.items(order="newest", limit=1000)
    assert [(item["priority"], item["rows"]) for item in restored] == [(item["priority"], item["rows"]) for item in original]
    assert len(fresh.sample(batch_items=256, deadline_s=5).keys) == 256
    process.kill()
    process.start()
    assert fresh.info(deadline_s=20)["items"] == 280
    part = fresh.export(rows_max_bytes=100 * table_spec.chunk_bytes)
    assert 20 < fresh.restore(part) <= 100
    with pytest.raises(TableError, match="export of table .* holds no rows of its .* items; raise rows_max_bytes"):
        fresh.restore(fresh.export(rows_max_bytes=0))
    fresh.close()


def _settle() -> None:
    """Longer than a shard waits before it writes down where it stands."""
    SystemClock().sleep(1.5)


def _refusal(client: TableClient) -> str:
    """Why a shard does not serve; empty when it does."""
    try:
        client.info(deadline_s=0.3)
    except DeadlineExceeded as error:
        return str(error)
    return ""


def _wait_until(condition: Callable[[], bool]) -> None:
    clock = SystemClock()
    end_s = clock.monotonic_s() + 30.0
    while not condition():
        assert clock.monotonic_s() < end_s, "the state did not come about"
        clock.sleep(0.02)
