"""A table's client against a running shard: items by key, strict accounting, deadlines, interrupts and forks."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, StoreUnavailable, TableError
from rollstream.replay import EachRow, Prioritized, SampleToInsertRatio, TableClient, TableWriter, queue_table
from rollstream.replay.weighting import ImportanceWeights
from rollstream.store import Address, Store


@pytest.fixture
def make_client(store: Store, address: Address, table_id: str) -> Iterator[Callable[..., TableClient]]:
    """Makes clients of the table, and closes them."""
    made: list[TableClient] = []

    def make(**settings: Any) -> TableClient:
        made.append(TableClient(store, address, table_id=table_id, clock=SystemClock(), **settings))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def written(store: Store, address: Address, episodic: Any, table_id: str) -> Callable[..., np.ndarray]:
    """Writes items of one row each; returns their keys."""

    def write(table_spec: Any, items: int, *, priorities: Any = None, version: int = 1) -> np.ndarray:
        writer = TableWriter(
            store,
            address,
            table_id=table_id,
            spec=table_spec,
            rule=EachRow(),
            environments=1,
            clock=SystemClock(),
            deadline_s=10.0,
        )
        rollout = episodic(1, episode_steps=100_000).rollout(items, version=version)
        priority = None if priorities is None else np.array(priorities, np.float32)
        result = writer.append_rows(rollout.rows, rollout.offsets, priority=priority)
        writer.flush(deadline_s=10.0)
        writer.close()
        return result.keys["replay"]

    return write


def test_given_keys_give_exactly_their_items(replay_service: Any, make_client: Any, written: Any, spec: Any) -> None:
    client, table_spec = make_client(), spec(sampler=Prioritized(exponent=1.0))
    client.create(table_spec)
    item_keys = written(table_spec, 4, priorities=[1.0, 2.0, 0.0, 1.0])
    wanted = item_keys[[3, 1, 1, 2]]
    sample = client.get(wanted)
    assert sample.keys.tolist() == wanted.tolist()
    assert sample.rows["observation"][:, 0, 0].tolist() == [3, 1, 1, 2]
    assert sample.probability.tolist() == pytest.approx([0.25, 0.5, 0.5, 0.0])
    assert sample.times_sampled.tolist() == [0, 0, 0, 0]
    assert client.info()["sampled"] == 0
    assert len(client.get(item_keys[:0])) == 0


def test_unknown_keys_are_reported(replay_service: Any, make_client: Any, written: Any, spec: Any, eventually: Any) -> None:
    client, table_spec = make_client(), spec(sampler=Prioritized(exponent=1.0))
    client.create(table_spec)
    item_keys = written(table_spec, 4)
    with_stranger = np.append(item_keys[:2], np.uint64(77))
    with pytest.raises(TableError, match="does not hold 1 of 3 keys: 77; their items were removed, or never there"):
        client.get(with_stranger)
    assert client.get(with_stranger, missing_ok=True).keys.tolist() == item_keys[:2].tolist()
    assert client.known(with_stranger).tolist() == [True, True, False]
    updated = client.update_priorities(with_stranger, np.array([1.0, np.nan, 1.0]), report_unknown=True)
    assert (updated.sent, updated.refused, updated.unknown) == (2, 1, 1)
    assert client.priorities_refused == 1
    assert client.update_priorities(item_keys, np.ones(4)).unknown is None
    assert client.update_priorities(item_keys[:0], np.ones(0), report_unknown=True).unknown == 0
    deleted = client.delete_items(with_stranger, report_unknown=True)
    assert (deleted.sent, deleted.unknown) == (3, 1)
    eventually(lambda: client.info()["items"] == 2)
    with pytest.raises(TableError, match="keys are whole numbers .* got float64"):
        client.known(np.zeros(3))


def test_a_reset_empties_the_table_and_what_was_asked_ahead(
    replay_service: Any, make_client: Any, written: Any, spec: Any
) -> None:
    client, table_spec = make_client(ahead_batches=4), spec()
    client.create(table_spec)
    written(table_spec, 8)
    client.sample(batch_items=8)
    assert client.reset() == 8
    assert client.info()["items"] == 0
    with pytest.raises(DeadlineExceeded, match="a batch of 8 items did not come within"):
        client.sample(batch_items=8, deadline_s=0.2)
    written(table_spec, 8)
    assert len(client.sample(batch_items=8)) == 8


def test_batches_that_lie_ahead_do_not_count_until_they_are_used(
    replay_service: Any, make_client: Any, written: Any, spec: Any
) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=4.0, min_items=8, tolerance_items=32.0)
    table_spec = spec(limiter=limiter)
    loose, strict = make_client(ahead_batches=4), make_client(ahead_batches=4, count_when_consumed=True)
    loose.create(table_spec)
    written(table_spec, 8)
    strict.sample(batch_items=8)
    strict.sample(batch_items=8)
    assert strict.info()["sampled"] <= 16
    strict.close()
    assert loose.info()["sampled"] == 16  # the rest was never used
    loose.sample(batch_items=8)
    assert loose.info()["sampled"] > 16 + 8


def test_lag_is_measured_by_the_newest_version_that_anybody_knows(
    replay_service: Any, make_client: Any, written: Any, spec: Any
) -> None:
    client, table_spec = make_client(), spec(max_lag_versions=10)
    client.create(table_spec)
    written(table_spec, 4, version=3)
    assert client.sample(batch_items=4).lag.tolist() == [0] * 4
    client.learner_version = 12
    sample = client.sample(batch_items=4)
    assert (sample.lag.tolist(), sample.version.tolist()) == ([9] * 4, [3] * 4)
    client.learner_version = 14
    with pytest.raises(DeadlineExceeded, match="a batch of 4 items did not come within"):
        client.sample(batch_items=4, deadline_s=0.2)
    written(table_spec, 2, version=13)
    sample = client.sample(batch_items=8)
    assert (set(sample.lag.tolist()), sample.table_items) == ({1}, 2)
    assert set(sample.age_rows.tolist()) <= {0, 1, 2}


def test_weights_come_with_the_sample(replay_service: Any, make_client: Any, written: Any, spec: Any) -> None:
    table_spec = spec(sampler=Prioritized(exponent=1.0))
    client = make_client(importance=ImportanceWeights(beta=1.0, normalize="table"))
    client.create(table_spec)
    written(table_spec, 3, priorities=[1.0, 2.0, 4.0])
    sample = client.sample(batch_items=64)
    assert sample.weights == pytest.approx(1.0 / sample.priority)
    assert make_client().sample(batch_items=4).weights is None


def test_strict_freshness_and_batches_ahead_exclude_each_other(make_client: Any) -> None:
    with pytest.raises(ConfigError, match="ahead_batches must be 0 with strict freshness and >= 0 otherwise, got 4"):
        make_client(ahead_batches=4, freshness="strict")


def test_a_wrong_name_lists_the_tables_there_are(
    *, replay_service: Any, make_client: Any, spec: Any, store: Store, address: Address
) -> None:
    make_client().create(spec())
    wrong = TableClient(store, address, table_id="run-abc123.reply", clock=SystemClock())
    for call in (
        lambda: wrong.sample(batch_items=4),
        wrong.info,
        lambda: wrong.update_priorities(np.array([1], np.uint64), np.ones(1)),
        wrong.reset,
        lambda: wrong.change({"max_items": 5}),
    ):
        with pytest.raises(TableError, match="run-abc123.reply does not exist; create it first .there are: run-abc123.replay"):
            call()
    wrong.close()


def test_more_than_a_queue_holds_is_refused_at_the_deadline_and_stays(
    *, replay_service: Any, make_client: Any, written: Any, spec: Any
) -> None:
    table_spec = queue_table("replay", max_items=10, rows=spec().rows)
    client = make_client()
    client.create(table_spec)
    item_keys = written(table_spec, 3)
    with pytest.raises(DeadlineExceeded, match="a batch of 5 items did not come within"):
        client.sample(batch_items=5, deadline_s=0.3)
    assert client.info()["items"] == 3
    assert client.sample(batch_items=3, deadline_s=5.0).keys.tolist() == item_keys.tolist()


def test_without_any_server_calls_end_at_their_deadline(make_client: Any, spec: Any, address: Address) -> None:
    nobody = Address(transport="unix", path=address.path + ".nobody")
    clock = SystemClock()
    store = Store(nobody, clock=clock)
    client = TableClient(store, nobody, table_id="run-abc123.replay", clock=clock)
    began_s = clock.monotonic_s()
    with pytest.raises(StoreUnavailable, match="did not read the table's spec within 0.2"):
        client.sample(batch_items=4, deadline_s=0.2)
    with pytest.raises(StoreUnavailable, match="did not list the members of the cell within 0.2"):
        client.create(spec(), deadline_s=0.2)
    assert clock.monotonic_s() - began_s < 20.0
    client.close()


def test_a_batch_whose_rows_could_not_be_fetched_comes_with_the_next_call(
    *, replay_service: Any, make_client: Any, written: Any, spec: Any, store: Store
) -> None:
    client, table_spec = make_client(), spec()
    client.create(table_spec)
    written(table_spec, 6)
    client.sample(batch_items=2)
    store.run("hold Redis up", lambda redis: redis.execute_command("CLIENT", "PAUSE", "1500", "ALL"))
    with pytest.raises(StoreUnavailable, match="did not fetch rows within"):
        client.sample(batch_items=4, deadline_s=0.1)
    assert len(client.sample(batch_items=4, deadline_s=20.0)) == 4
    assert client.info()["sampled"] == 2 + 4


def test_items_that_are_used_up_are_not_asked_ahead_because_their_rows_go_at_once(
    *, replay_service: Any, make_client: Any, written: Any, spec: Any
) -> None:
    client, table_spec = make_client(ahead_batches=4), spec(max_times_sampled=1)
    client.create(table_spec)
    written(table_spec, 40)
    client.sample(batch_items=4)
    assert client.info()["items"] == 36


def test_an_interrupt_ends_the_wait_and_the_client_goes_on(
    replay_service: Any, make_client: Any, written: Any, spec: Any
) -> None:
    client, table_spec = make_client(), spec()
    client.create(table_spec)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        client.sample(batch_items=4, deadline_s=60.0)
    timer.join()
    item_keys = written(table_spec, 4)
    assert set(client.sample(batch_items=16).keys.tolist()) <= set(item_keys.tolist())


def test_a_forked_child_has_connections_and_batches_of_its_own(
    replay_service: Any, make_client: Any, written: Any, spec: Any
) -> None:
    client, table_spec = make_client(ahead_batches=2), spec(max_times_sampled=1, max_items=64)
    client.create(table_spec)
    written(table_spec, 40)
    mine = [client.sample(batch_items=8).keys]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            theirs = client.sample(batch_items=8, deadline_s=10.0).keys
            os.write(writing, theirs.tobytes())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(reading, 1024), np.uint64)
    os.close(reading)
    os.close(writing)
    mine += [client.sample(batch_items=8).keys for _ in range(2)]
    assert len(theirs) == 8
    assert len(set(np.concatenate([*mine, theirs]).tolist())) == 32
