"""A table over several shards: each holds its part, the limiter is for the whole, and changes made at one reach the others."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.replay import EachRow, SampleToInsertRatio, TableSpec, TableWriter
from rollstream.replay.item_keys import shard_of
from rollstream.replay.samples import SampleReply, SampleRequest, decode_reply, encode_request
from rollstream.store import Address, Members, Store, keys

REPLAY, RECENT = "run-abc123.replay", "run-abc123.recent"


@pytest.fixture
def write(store: Store, address: Address) -> Callable[..., TableWriter]:
    def make(table_spec: TableSpec, *, shard: int | None = None) -> TableWriter:
        return TableWriter(
            store,
            address,
            table_id=REPLAY,
            shard=shard,
            spec=table_spec,
            rule=EachRow(),
            environments=4,
            clock=SystemClock(),
            deadline_s=10.0,
        )

    return make


def create(ask: Any, table_id: str, spec: TableSpec, *, shards: int) -> None:
    for shard in range(shards):
        answer = ask("PUT", f"/{table_id}", spec.model_dump(mode="json"), shard=shard)
        assert answer.status == 200, answer.body


def sample(ask: Any, *counts: int, shard: int, deadline_ms: int = 5000) -> SampleReply:
    request = SampleRequest(counts=np.array(counts, np.uint32), deadline_ms=deadline_ms)
    answer = ask("POST", f"/{REPLAY}/samples", body=encode_request(request), shard=shard)
    assert answer.status == 200, answer.body
    return decode_reply(answer.body)


def test_each_shard_holds_its_part_and_limits_are_shared(
    *, replay_shard: Any, ask: Any, write: Any, spec: Any, episodic: Any
) -> None:
    for shard in range(2):
        replay_shard(shard)
    table_spec = spec(shards=2, max_items=50)
    create(ask, REPLAY, table_spec, shards=2)
    for shard in range(2):
        writer = write(table_spec, shard=shard)
        written = writer.append(episodic(4, episode_steps=99).rollout(10))
        writer.flush(deadline_s=10)
        assert set(shard_of(written.keys["replay"]).tolist()) == {shard}
    told = [ask("GET", f"/{REPLAY}", shard=shard).content for shard in range(2)]
    assert [each["items"] for each in told] == [25, 25]
    assert set(shard_of(sample(ask, 64, shard=1).items.keys).tolist()) == {1}


def test_the_limiter_counts_what_all_shards_do(
    *, replay_shard: Any, ask: Any, write: Any, spec: Any, episodic: Any, eventually: Any
) -> None:
    for shard in range(2):
        replay_shard(shard)
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=40, tolerance_items=60)
    table_spec = spec(shards=2, limiter=limiter)
    create(ask, REPLAY, table_spec, shards=2)
    first, second = write(table_spec, shard=0), write(table_spec, shard=1)
    first.append(episodic(4, episode_steps=99).rollout(6))
    first.flush(deadline_s=10)
    told = ask("GET", f"/{REPLAY}/limiter", shard=0).content
    assert (told["can_sample_one"], told["size"]) == (False, 24)
    second.append(episodic(4, episode_steps=99).rollout(6))
    second.flush(deadline_s=10)
    eventually(lambda: ask("GET", f"/{REPLAY}/limiter", shard=0).content["can_sample_one"])
    told = ask("GET", f"/{REPLAY}/limiter", shard=0).content
    assert (told["size_elsewhere"], told["inserted_elsewhere"], told["diff"]) == (24, 24, 48.0)
    sample(ask, 32, shard=1)
    eventually(lambda: ask("GET", f"/{REPLAY}/limiter", shard=0).content["sampled_elsewhere"] == 32)
    # 48 inserted, 32 sampled: 84 more may come before writers are 100 ahead, whichever shard they come to
    first.append(episodic(4, episode_steps=99).rollout(20))
    first.flush(deadline_s=10)
    eventually(lambda: ask("GET", f"/{REPLAY}/limiter", shard=1).content["inserted_elsewhere"] == 104)
    second.append(episodic(4, episode_steps=99).rollout(10))
    told = eventually(lambda: (told := ask("GET", f"/{REPLAY}/limiter", shard=1).content)["writers_waiting"] and told)
    assert told["inserted"] + told["inserted_elsewhere"] == 132
    assert not told["can_insert_one"]


def test_a_table_lies_only_on_the_shards_of_its_spec(*, replay_shard: Any, ask: Any, spec: Any, eventually: Any) -> None:
    for shard in range(2):
        replay_shard(shard)
    create(ask, REPLAY, spec(), shards=1)
    create(ask, RECENT, spec(name="recent", shards=2), shards=1)
    eventually(lambda: [table["id"] for table in ask("GET", "", shard=1).content["tables"]] == [RECENT])
    answer = ask("PUT", f"/{REPLAY}", spec().model_dump(mode="json"), shard=1)
    assert (answer.status, answer.content["kind"]) == (409, "table")
    assert f"table {REPLAY} has shards 0 to 0: shard 1 holds no part of it" in answer.content["detail"]


def test_what_changes_at_one_shard_changes_at_all(
    *, replay_shard: Any, ask: Any, write: Any, spec: Any, episodic: Any, store: Store, eventually: Any
) -> None:
    for shard in range(2):
        replay_shard(shard)
    table_spec = spec(shards=2)
    create(ask, REPLAY, table_spec, shards=2)
    create(ask, RECENT, spec(name="recent", shards=2, rows_of="replay"), shards=2)
    for shard in range(2):
        writer = write(table_spec, shard=shard)
        writer.append(episodic(4, episode_steps=99).rollout(10))
        writer.flush(deadline_s=10)
    assert ask("PATCH", f"/{REPLAY}", {"max_items": 20}, shard=1).status == 200
    eventually(lambda: ask("GET", f"/{REPLAY}", shard=0).content["items"] == 10)
    assert ask("DELETE", f"/{REPLAY}?with_shared=true", shard=0).status == 200
    eventually(lambda: ask("GET", "", shard=1).content["tables"] == [])
    eventually(lambda: store.client.keys(f"{keys.shard_prefix(REPLAY, 1)}*") == [])


def test_a_shard_that_was_away_takes_up_what_was_changed_meanwhile(*, replay_process: Any, ask: Any, spec: Any) -> None:
    first, second = replay_process("replay-0"), replay_process("replay-1", ROLLSTREAM_SHARD="1")
    create(ask, REPLAY, spec(shards=2), shards=2)
    second.kill()
    assert ask("PATCH", f"/{REPLAY}", {"max_items": 20}, shard=0).status == 200
    second.start()
    assert ask("GET", f"/{REPLAY}", shard=1).content["max_items"] == 20
    assert first.process.poll() is None


def test_a_former_owner_that_wakes_up_writes_nothing(
    *, replay_process: Any, ask: Any, write: Any, spec: Any, episodic: Any, store: Store, members: Members, eventually: Any
) -> None:
    first = replay_process("replay-a")
    create(ask, REPLAY, spec(max_items=30), shards=1)
    writer, source = write(spec(max_items=30)), episodic(4, episode_steps=99)
    writer.append(source.rollout(10))
    writer.flush(deadline_s=10)
    first.process.send_signal(signal.SIGSTOP)
    writer.append(source.rollout(10))  # lies in the log when the first comes back
    replay_process("replay-b")
    eventually(lambda: any(each.id == "replay-b" and each.ready for each in members.list()))
    writer.flush(deadline_s=20)
    for _ in range(5):
        writer.append(source.rollout(10))
    writer.flush(deadline_s=20)
    token = store.client.get(keys.replay_lease(0))
    position = store.client.hgetall(keys.table_position(REPLAY, 0))
    first.process.send_signal(signal.SIGCONT)
    eventually(lambda: any(each.id == "replay-a" and not each.ready for each in members.list()))
    SystemClock().sleep(1.5)  # time enough for each of its loops
    assert store.client.get(keys.replay_lease(0)) == token
    assert store.client.hgetall(keys.table_position(REPLAY, 0)) == position
    told = ask("GET", f"/{REPLAY}").content
    assert (told["items"], told["missing_rows"]) == (30, 0)
    for item in ask("GET", f"/{REPLAY}/items?order=oldest&limit=30").content["items"]:
        assert item["rows"] is not None
    assert first.process.poll() is None
