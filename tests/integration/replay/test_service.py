"""The replay service as a process: tables over HTTP, rows through Redis, priorities through the log."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, SchemaMismatch, TableError
from rollstream.replay import (
    EachRow,
    Fifo,
    MinSize,
    NStep,
    Prioritized,
    SampleToInsertRatio,
    TableClient,
    TableWriter,
    n_step,
)
from rollstream.replay.samples import SampleRequest, encode_request
from rollstream.spaces import Column, RowSpec
from rollstream.store import Address, Members, Store, chunk_prefix, keys


@pytest.fixture
def write(store: Store, address: Address, spec: Callable[..., Any], table_id: str) -> Callable[..., TableWriter]:
    """A writer of four environments."""

    def make(rule: Any = None, *, table_spec: Any = None, deadline_s: float = 10.0) -> TableWriter:
        return TableWriter(
            store,
            address,
            table_id=table_id,
            spec=table_spec or spec(),
            rule=rule or NStep(3),
            environments=4,
            clock=SystemClock(),
            deadline_s=deadline_s,
        )

    return make


def ask(members: Members, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, Any]]:
    """One plain HTTP request, as any client would make it."""
    parts = urlsplit(members.list()[0].url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    content = json.loads(reply.read())
    connection.close()
    return reply.status, content


def test_what_is_sampled_is_what_was_written(
    replay_service: Any, client: TableClient, write: Any, spec: Any, episodic: Any
) -> None:
    client.create(spec(sampler=Prioritized()))
    writer, source = write(), episodic(4, episode_steps=7)
    rollouts = [source.rollout(15) for _ in range(10)]
    for rollout in rollouts:
        writer.append(rollout)
    writer.close()
    writer.flush(deadline_s=10)
    assert client.info()["items"] == sum(rollout.env_steps for rollout in rollouts)
    sample = client.sample(batch_items=256, deadline_s=10)
    columns = n_step(sample.rows, sample.lengths, discount=0.5)
    row = columns["observation"][:, 0]
    steps = np.minimum(np.minimum(3, 7 - row % 8), 150 - row)  # shorter at the end of an episode, and where the writer left
    assert (sample.lengths == steps + 1).all()
    assert columns["next_observation"][:, 0].tolist() == (row + steps).tolist()
    assert columns["next_observation"][:, 1].tolist() == columns["observation"][:, 1].tolist()
    expected = sum(np.where(step < steps, (row + step) * 0.5**step, 0.0) for step in range(3))
    assert columns["reward"] == pytest.approx(expected)
    at_end = (row + steps) % 8 == 7
    assert columns["discount"] == pytest.approx(np.where(at_end, 0.0, 0.5**steps))


def test_returned_priorities_change_what_is_sampled(
    replay_service: Any, client: TableClient, write: Any, spec: Any, episodic: Any
) -> None:
    client.create(spec(sampler=Prioritized(exponent=1.0)))
    writer = write()
    writer.append(episodic(4, episode_steps=7).rollout(32))
    writer.flush(deadline_s=10)
    everything = client.items(order="oldest", limit=200)
    item_keys = np.array([item["key"] for item in everything], np.uint64)
    priorities = np.zeros(len(item_keys))
    priorities[5] = 4.0
    given = item_keys.copy()
    assert client.update_priorities(item_keys, priorities).sent == len(item_keys)
    assert (item_keys == given).all()
    _wait_for(client, "priorities_updated", len(item_keys))
    sample = client.sample(batch_items=32, deadline_s=10)
    assert set(sample.keys.tolist()) == {everything[5]["key"]}
    assert sample.probability.tolist() == [1.0] * 32
    assert sample.table_items == 1
    top = client.items(order="priority", limit=1)[0]
    assert (top["key"], top["priority"]) == (everything[5]["key"], 4.0)
    assert top["rows"][0]["observation"][0] == top["start_row"]


def test_sampling_waits_for_min_items_and_says_so(
    replay_service: Any, client: TableClient, write: Any, spec: Any, episodic: Any
) -> None:
    client.create(spec(limiter=MinSize(min_items=256)))
    writer = write(EachRow())
    writer.append(episodic(4, episode_steps=100).rollout(16))
    writer.flush(deadline_s=10)
    with pytest.raises(DeadlineExceeded, match="a batch of 256 items did not come within .*waiting for min_items 256, have 64"):
        client.sample(batch_items=256, deadline_s=0.3)
    assert not client.can_sample(batch_items=256)
    writer.append(episodic(4, episode_steps=100).rollout(48))
    assert len(client.sample(batch_items=256, deadline_s=10).keys) == 256
    assert client.can_sample(batch_items=256)


def test_writers_wait_for_samplers_with_a_deadline_that_names_both_sides(
    replay_service: Any, client: TableClient, write: Any, spec: Any, episodic: Any
) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=10, tolerance_items=50)
    table_spec = spec(limiter=limiter, unread_entries=2)
    client.create(table_spec)
    writer, source = write(EachRow(), table_spec=table_spec), episodic(4, episode_steps=100)
    writer.append(source.rollout(16))
    writer.append(source.rollout(16))
    with pytest.raises(DeadlineExceeded, match="writers are ahead of the ratio.*samplers must sample"):
        writer.wait_for_room(deadline_s=1.5)
    with pytest.raises(DeadlineExceeded, match="its rows to be admitted"):
        writer.flush(deadline_s=0.2)
    assert not writer.has_room()
    for _ in range(8):
        client.sample(batch_items=8, deadline_s=10)
    assert writer.append(source.rollout(1)).items == 4
    info = client.info()
    assert info["sampled"] == 64
    assert info["inserted"] == 10 + 50 + 64


def test_a_batch_that_can_never_be_served_is_refused_at_once(replay_service: Any, client: TableClient, spec: Any) -> None:
    client.create(spec(limiter=SampleToInsertRatio(samples_per_insert=1.0, min_items=10, tolerance_items=100)))
    with pytest.raises(TableError, match=r"can never serve this batch: 2 \* tolerance_items >= batch_items"):
        client.sample(batch_items=256, deadline_s=10)
    with pytest.raises(TableError, match="batch_items must be >= 1, got 0"):
        client.sample(batch_items=0, deadline_s=10)


def test_creating_is_idempotent_and_differences_are_named(
    replay_service: Any, client: TableClient, spec: Any, members: Members, table_id: str
) -> None:
    client.create(spec())
    client.create(spec())
    with pytest.raises(ConfigError, match="exists with another spec .max_items is 1000, wanted 2000"):
        client.create(spec(max_items=2000))
    with pytest.raises(SchemaMismatch, match="row columns differ"):
        client.create(spec(rows=RowSpec((Column(name="observation", dtype="<f4"),))))
    document = {**spec().model_dump(mode="json"), "max_item": 5, "chunk_rows": 0}
    status, content = ask(members, "PUT", f"/v1/tables/{table_id}", json.dumps(document).encode())
    assert status == 422
    assert {problem["path"] for problem in content["problems"]} == {"max_item", "chunk_rows"}
    deadlock = {**spec().model_dump(mode="json"), "limiter": {"kind": "min_size", "min_items": 5000}}
    status, content = ask(members, "PUT", "/v1/tables/run-abc123.other", json.dumps(deadlock).encode())
    assert (status, "min_items <= max_items fails: 5000 > 1000" in content["detail"]) == (422, True)
    status, content = ask(members, "GET", f"/v1/tables/{table_id}/items?limit=0")
    assert (status, "request does not fit" in content["detail"]) == (422, True)


def test_a_living_table_changes_by_patch(replay_service: Any, client: TableClient, write: Any, spec: Any, episodic: Any) -> None:
    client.create(spec())
    writer = write(EachRow())
    writer.append(episodic(4, episode_steps=100).rollout(50))
    writer.flush(deadline_s=10)
    changed = client.change({"max_items": 20, "sampler": {"kind": "prioritized", "exponent": 0.5}})
    assert changed.max_items == 20
    assert client.info()["items"] == 20
    with pytest.raises(ConfigError, match="chunk_rows of table run-abc123.replay cannot change, got 4; make a new table"):
        client.change({"chunk_rows": 4})


def test_a_table_that_would_not_fit_into_redis_is_refused(
    replay_service: Any, client: TableClient, spec: Any, store: Store
) -> None:
    store.run("limit memory", lambda redis: redis.config_set("maxmemory", "20mb"))
    try:
        with pytest.raises(ConfigError, match="with max_items 1000000 will need .* MiB.*Redis has maxmemory 20 MiB"):
            client.create(spec(max_items=1_000_000))
    finally:
        store.run("unlimit memory", lambda redis: redis.config_set("maxmemory", "0"))


def test_a_table_whose_keys_would_be_those_of_another_is_refused(
    replay_service: Any, store: Store, address: Address, spec: Any
) -> None:
    first, second = (
        TableClient(store, address, table_id=table_id, clock=SystemClock())
        for table_id in ("run-074c22.replay", "run-087bbc.replay")
    )
    first.create(spec())
    with pytest.raises(ConfigError, match=r"run-087bbc.replay would have the keys of table run-074c22.replay \(one hash tag"):
        second.create(spec())
    first.drop()
    second.create(spec())


def test_unknown_tables_are_named(replay_service: Any, client: TableClient, spec: Any, write: Any, episodic: Any) -> None:
    with pytest.raises(TableError, match="table run-abc123.replay does not exist; create it first"):
        client.sample(batch_items=1, deadline_s=1.0)
    with pytest.raises(TableError, match="table run-abc123.replay does not exist; create it first .there are: none"):
        client.info()
    writer = write(deadline_s=0.2)
    assert not writer.has_room()
    with pytest.raises(DeadlineExceeded, match="does not exist after .* waits for the learner to create it"):
        writer.append(episodic(4, episode_steps=7).rollout(8))


def test_dropping_a_table_leaves_no_key_behind(
    *, replay_service: Any, client: TableClient, write: Any, spec: Any, episodic: Any, store: Store, table_id: str
) -> None:
    client.create(spec())
    writer = write()
    writer.append(episodic(4, episode_steps=7).rollout(32))
    writer.flush(deadline_s=10)
    client.update_priorities(np.array([1], np.uint64), np.array([1.0]))
    client.drop()
    client.drop()
    left: Any = store.run("look", lambda redis: redis.keys(keys.shard_prefix(table_id, 0) + "*"))
    assert left == []
    assert store.run("look", lambda redis: redis.hlen(keys.tables())) == 0


def test_rows_of_evicted_items_are_deleted(
    *, replay_service: Any, client: TableClient, write: Any, spec: Any, episodic: Any, store: Store, table_id: str
) -> None:
    client.create(spec(max_items=40))
    writer, source = write(EachRow()), episodic(4, episode_steps=1000)
    for _ in range(10):
        writer.append(source.rollout(10))
    writer.flush(deadline_s=10)
    _wait_until(lambda: len(_chunk_keys(store, table_id)) == 40)


def test_an_evicted_row_is_noticed_and_another_item_drawn(
    *, replay_service: Any, client: TableClient, write: Any, spec: Any, episodic: Any, store: Store, table_id: str
) -> None:
    client.create(spec())
    writer = write(EachRow())
    writer.append(episodic(4, episode_steps=100).rollout(4))
    writer.flush(deadline_s=10)
    chunks = _chunk_keys(store, table_id)
    store.run("lose rows", lambda redis: redis.unlink(*chunks[:12]))
    sample = client.sample(batch_items=64, deadline_s=10)
    assert len(sample.keys) == 64
    assert client.rows_missing > 0
    _wait_for(client, "items", 4)
    store.run("lose rows", lambda redis: redis.unlink(*chunks))
    with pytest.raises(DeadlineExceeded, match="sampled items are gone from Redis, and no others came within"):
        client.sample(batch_items=4, deadline_s=0.0)


def test_several_batches_come_in_one_reply(
    *, replay_service: Any, write: Any, spec: Any, episodic: Any, store: Store, address: Address, table_id: str
) -> None:
    ahead = TableClient(store, address, table_id=table_id, clock=SystemClock(), ahead_batches=4)
    ahead.create(spec(sampler=Fifo(), max_times_sampled=1))
    writer = write(EachRow())
    writer.append(episodic(4, episode_steps=1000).rollout(30))
    writer.flush(deadline_s=10)
    seen = np.concatenate([ahead.sample(batch_items=12, deadline_s=10).keys for _ in range(10)])
    assert len(set(seen.tolist())) == 120
    with pytest.raises(DeadlineExceeded, match="did not come within"):
        ahead.sample(batch_items=12, deadline_s=0.3)
    ahead.close()


def test_packed_requests_from_elsewhere_are_answered_as_problems(
    replay_service: Any, client: TableClient, spec: Any, members: Members, table_id: str
) -> None:
    client.create(spec())
    status, content = ask(members, "POST", f"/v1/tables/{table_id}/samples", b"junk")
    assert (status, content["kind"]) == (409, "schema")
    request = encode_request(SampleRequest(counts=np.array([5], np.uint32), deadline_ms=50))
    status, content = ask(members, "POST", f"/v1/tables/{table_id}/samples", request)
    assert (status, content["kind"]) == (504, "deadline")
    status, content = ask(members, "POST", "/v1/tables/nope/samples", request)
    assert (status, content["kind"]) == (404, "table")


def test_probes_and_metrics_tell_the_truth(replay_service: Any, client: TableClient, spec: Any, members: Members) -> None:
    client.create(spec())
    record = members.list()[0]
    assert (record.role, record.shard) == ("replay", 0)
    assert ask(members, "GET", "/healthz") == (200, {"ok": True, "why": ""})
    assert ask(members, "GET", "/readyz") == (200, {"ok": True, "why": ""})
    parts = urlsplit(record.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    assert 'rollstream_table_items{shard="0",table="run-abc123.replay"} 0.0' in text
    replay_service.stop()
    assert members.list() == []


def test_priorities_of_the_wrong_shape_are_refused(client: TableClient) -> None:
    with pytest.raises(TableError, match=r"update_priorities needs keys \[K\] and priorities \[K\]"):
        client.update_priorities(np.zeros(3, np.uint64), np.zeros(2))


def test_rollouts_that_do_not_fit_are_refused(write: Any, spec: Any, episodic: Any) -> None:
    with pytest.raises(SchemaMismatch, match="rollout has 2 environments where the writer was made for 4"):
        write().append(episodic(2, episode_steps=5).rollout(3))
    other = spec(rows=RowSpec((Column(name="observation", dtype="<f4"),)))
    with pytest.raises(SchemaMismatch, match="rows for table run-abc123.replay have the columns"):
        write(table_spec=other).append(episodic(4, episode_steps=5).rollout(3))


def test_without_a_shard_requests_end_at_their_deadline(client: TableClient, spec: Any) -> None:
    with pytest.raises(DeadlineExceeded, match="replay shard 0 did not serve PUT .*no member announces itself as this shard"):
        client.create(spec(), deadline_s=0.2)


def _chunk_keys(store: Store, table_id: str) -> list[bytes]:
    found: Any = store.run("look", lambda redis: redis.keys(chunk_prefix(table_id, 0) + b"*"))
    return sorted(found)


def _wait_for(client: TableClient, name: str, value: float) -> None:
    _wait_until(lambda: client.info()[name] == value)


def _wait_until(condition: Callable[[], bool]) -> None:
    clock = SystemClock()
    end_s = clock.monotonic_s() + 20.0
    while not condition():
        assert clock.monotonic_s() < end_s, "the state did not come about"
        clock.sleep(0.02)
