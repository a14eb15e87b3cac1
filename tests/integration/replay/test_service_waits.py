"""Both sides waiting, a full Redis, rows that nobody needs, and a shard that is asked for by number or by what is free."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.replay import EachRow, SampleToInsertRatio, TableSpec, TableWriter
from rollstream.replay.samples import SampleRequest, decode_reply, encode_request
from rollstream.store import Address, ChunkWriter, Members, Store, chunk_prefix, keys

REPLAY, RECENT = "run-abc123.replay", "run-abc123.recent"


@pytest.fixture
def write(store: Store, address: Address, spec: Callable[..., TableSpec]) -> Callable[..., TableWriter]:
    def make(table_spec: TableSpec | None = None, **more: Any) -> TableWriter:
        rules: dict[str, Any] = {} if "tables" in more else {"rule": EachRow()}
        return TableWriter(
            store,
            address,
            table_id=REPLAY,
            spec=table_spec or spec(),
            environments=4,
            clock=SystemClock(),
            **{"deadline_s": 10.0, **rules, **more},
        )

    return make


def create(ask: Any, table_id: str, spec: TableSpec) -> None:
    answer = ask("PUT", f"/{table_id}", spec.model_dump(mode="json"))
    assert answer.status == 200, answer.body


def request(*counts: int, deadline_ms: int = 5000) -> bytes:
    return encode_request(SampleRequest(counts=np.array(counts, np.uint32), deadline_ms=deadline_ms))


def metrics(ask: Any) -> str:
    import urllib.request

    with urllib.request.urlopen(f"{ask.url()}/metrics", timeout=10) as reply:
        return str(reply.read().decode())


def test_writers_and_samplers_that_wait_for_each_other_are_both_named(
    *, replay_service: Any, ask: Any, write: Any, spec: Any, episodic: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    # the second table is full and nobody samples it, so nothing goes into the first, whose sampler waits for it
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=4, tolerance_items=8)
    create(ask, REPLAY, spec())
    create(ask, RECENT, spec(name="recent", rows_of="replay", limiter=limiter))
    writer = write(tables={"replay": EachRow(), "recent": EachRow()})
    source = episodic(4, episode_steps=99)
    with caplog.at_level(logging.ERROR):
        writer.append(source.rollout(4))
        writer.append(source.rollout(4))
        assert ask("PATCH", f"/{REPLAY}", {"limiter": {"kind": "min_size", "min_items": 30}}).status == 200
        sampler = threading.Thread(target=lambda: ask("POST", f"/{REPLAY}/samples", body=request(8, deadline_ms=15_000)))
        sampler.start()
        told = eventually(lambda: (told := ask("GET", f"/{REPLAY}").content)["blocked_s"] > 2.0 and told)
        assert "writers: " in told["blocked"]
        assert "recent: writers are ahead of the ratio" in told["blocked"]
        assert "samplers: waiting for min_items 30, have " in told["blocked"]
        text = eventually(lambda: "both sides wait for each other" in caplog.text and caplog.text)
        assert "a sampler of 8 items: waiting for min_items 30" in text
    blocked = [line for line in metrics(ask).splitlines() if line.startswith("rollstream_table_blocked_seconds")]
    assert any(f'table="{REPLAY}"' in line and float(line.split()[-1]) > 2.0 for line in blocked)
    waiting = ask("GET", f"/{REPLAY}/limiter").content["samplers_waiting"]
    assert [(each["batch_items"], each["deadline_s"]) for each in waiting] == [(8, 15.0)]
    assert ask("PATCH", f"/{RECENT}", {"limiter": {"kind": "min_size", "min_items": 1}}).status == 200
    sampler.join(timeout=10)
    assert not sampler.is_alive()
    assert ask("GET", f"/{REPLAY}").content["blocked"] == ""


def test_a_full_redis_is_survived_and_told(
    *, replay_process: Any, ask: Any, write: Any, spec: Any, episodic: Any, store: Store, members: Members, eventually: Any
) -> None:
    process = replay_process()
    create(ask, REPLAY, spec())
    writer, source = write(deadline_s=0.2), episodic(4, episode_steps=99)
    writer.append(source.rollout(10))
    writer.flush(deadline_s=10)
    before = ask("GET", f"/{REPLAY}").content["items"]
    store.client.config_set("maxmemory", "1")
    try:
        answer = ask("POST", f"/{REPLAY}/samples", body=request(16))
        assert len(decode_reply(answer.body).items) == 16
        eventually(lambda: "out of memory" in ask("GET", f"/{REPLAY}").content["redis_full"])
        SystemClock().sleep(2.5)  # longer than the lease and than a record would last without renewal
        assert ask("POST", f"/{REPLAY}/samples", body=request(16)).status == 200
        assert "rollstream_redis_full 1.0" in metrics(ask)
        record = members.list()[0]
        assert (record.id, record.ready) == ("replay-0", True)
    finally:
        store.client.config_set("maxmemory", "0")
    eventually(lambda: ask("GET", f"/{REPLAY}").content["redis_full"] == "")
    writer.append(source.rollout(10))
    writer.flush(deadline_s=10)
    assert ask("GET", f"/{REPLAY}").content["items"] == before + 40
    assert process.terminate() == 0
    events = [str(line["event"]) for line in process.log_lines()]
    assert not [event for event in events if "starts again" in event]
    assert [event for event in events if "inserts are not acknowledged until Redis has room" in event]
    assert [event for event in events if "Redis has room again after" in event]


def test_rows_of_a_writer_that_died_before_its_log_entry_are_swept(
    *, replay_shard: Any, ask: Any, write: Any, spec: Any, episodic: Any, store: Store, address: Address, eventually: Any
) -> None:
    replay_shard(sweep_every_s=0.5)
    create(ask, REPLAY, spec())
    writer = write()
    writer.append(episodic(4, episode_steps=99).rollout(10))
    writer.flush(deadline_s=10)
    rows = ChunkWriter(address, clock=SystemClock())
    payload = np.zeros((50, spec().chunk_bytes), np.uint8)
    numbers, environments = np.arange(50, dtype=np.uint64), np.zeros(50, np.uint32)
    rows.write(chunk_prefix(REPLAY, 0), 4711, environments, numbers, payload)  # nobody will ever tell of these
    rows.write(chunk_prefix(REPLAY, 0), writer.writer_id, environments, numbers + np.uint64(1000), payload)
    rows.close()
    pattern = chunk_prefix(REPLAY, 0) + b"*"
    assert len(store.client.keys(pattern)) == 140
    eventually(lambda: len(store.client.keys(pattern)) == 40)
    told = ask("GET", f"/{REPLAY}").content
    assert (told["orphans_swept"], told["items"]) == (100, 40)
    assert "rollstream_orphans_swept_total 100.0" in metrics(ask)
    assert ask("POST", f"/{REPLAY}/samples", body=request(256)).status == 200


def test_what_is_written_to_a_dropped_table_is_swept(
    *, replay_shard: Any, ask: Any, write: Any, spec: Any, episodic: Any, store: Store, address: Address, eventually: Any
) -> None:
    replay_shard(sweep_every_s=0.5)
    create(ask, REPLAY, spec())
    create(ask, "run-abc123.kept", spec(name="kept"))
    store.client.hset(keys.tables(), "run-abc123.strange", "a spec of the future")
    store.client.set(f"{keys.shard_prefix('run-abc123.strange', 7)}:log", "kept")
    writer = write()
    writer.append(episodic(4, episode_steps=99).rollout(10))
    writer.flush(deadline_s=10)
    assert ask("DELETE", f"/{REPLAY}").status == 200
    assert store.client.keys(f"{keys.shard_prefix(REPLAY, 0)}*") == []
    rows = ChunkWriter(address, clock=SystemClock())  # what a writer does that has not heard of it
    log = keys.table_log(REPLAY, 0)
    rows.write(
        chunk_prefix(REPLAY, 0),
        writer.writer_id,
        np.zeros(4, np.uint32),
        np.arange(4, dtype=np.uint64),
        np.zeros((4, spec().chunk_bytes), np.uint8),
        then=[("XADD", log, "*", "i", b"an entry")],
    )
    rows.close()
    assert len(store.client.keys(f"{keys.shard_prefix(REPLAY, 0)}*")) == 5
    eventually(lambda: store.client.keys(f"{keys.shard_prefix(REPLAY, 0)}*") == [])
    assert len(store.client.keys(f"{keys.shard_prefix('run-abc123.kept', 0)}*")) > 0
    assert store.client.get(f"{keys.shard_prefix('run-abc123.strange', 7)}:log") == b"kept"


def test_processes_without_numbers_take_what_is_free(
    *, replay_shard: Any, ask: Any, spec: Any, members: Members, eventually: Any, store: Store
) -> None:
    for member in range(3):
        replay_shard(any_of_shards=2, shard=member)
    eventually(lambda: sorted(each.shard for each in members.list() if each.ready) == [0, 1])
    assert len(members.list()) == 3
    create_both = spec(shards=2)
    for shard in range(2):
        assert ask("PUT", f"/{REPLAY}", create_both.model_dump(mode="json"), shard=shard).status == 200
    assert store.client.hlen(keys.tables()) == 1
