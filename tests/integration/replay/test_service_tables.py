"""Several tables over the same rows, live change, removal and inspection, over plain HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import TableError
from rollstream.replay import EachRow, MinSize, NStep, Prioritized, SampleToInsertRatio, TableSpec, TableWriter
from rollstream.replay.samples import SampledItems, SampleReply, SampleRequest, decode_items, decode_reply, encode_request
from rollstream.store import Address, Store, chunk_prefix, keys

REPLAY, RECENT = "run-abc123.replay", "run-abc123.recent"


@pytest.fixture
def write(store: Store, address: Address, spec: Callable[..., TableSpec]) -> Callable[..., TableWriter]:
    """A writer of four environments: every row to `replay`, windows of three steps to `recent` when it is there."""

    def make(*, both: bool = False, table_spec: TableSpec | None = None, deadline_s: float = 10.0) -> TableWriter:
        rules: dict[str, Any] = {"tables": {"replay": EachRow(), "recent": NStep(3)}} if both else {"rule": EachRow()}
        return TableWriter(
            store,
            address,
            table_id=REPLAY,
            spec=table_spec or spec(),
            environments=4,
            clock=SystemClock(),
            deadline_s=deadline_s,
            **rules,
        )

    return make


def create(ask: Any, table_id: str, spec: TableSpec) -> Any:
    answer = ask("PUT", f"/{table_id}", spec.model_dump(mode="json"))
    assert answer.status == 200, answer.body
    return answer.content


def sample(ask: Any, table_id: str, *counts: int, deadline_ms: int = 5000, **more: Any) -> SampleReply:
    request = SampleRequest(counts=np.array(counts, np.uint32), deadline_ms=deadline_ms, **more)
    answer = ask("POST", f"/{table_id}/samples", body=encode_request(request))
    assert answer.status == 200, answer.body
    return decode_reply(answer.body)


def chunks(store: Store) -> int:
    return len(store.client.keys(chunk_prefix(REPLAY, 0) + b"*"))


# --- several tables over the same rows -----------------------------------------------------------------------------------


def test_two_tables_hold_items_over_rows_that_are_stored_once(
    *, replay_service: Any, ask: Any, write: Any, spec: Any, episodic: Any, store: Store
) -> None:
    create(ask, REPLAY, spec())
    told = create(ask, RECENT, spec(name="recent", rows_of="replay", max_items=20))
    assert (told["rows_of"], told["items"], told["bytes"]) == (REPLAY, 0, 0)
    writer = write(both=True)
    for rollout in [episodic(4, episode_steps=9).rollout(10)]:
        writer.append(rollout)
    writer.flush(deadline_s=10)
    listed = {table["id"]: table["items"] for table in ask("GET", "").content["tables"]}
    assert listed == {REPLAY: 36, RECENT: 20}
    assert chunks(store) == 40
    sampled = sample(ask, RECENT, 64)
    assert set(sampled.items.length.tolist()) <= {2, 3, 4}
    assert set(sample(ask, REPLAY, 64).items.length.tolist()) == {1}
    item = ask("GET", f"/{RECENT}/items?order=oldest&limit=1").content["items"][0]
    assert [row["observation"][0] for row in item["rows"]] == [item["start_row"] + at for at in range(item["length"])]


def test_a_table_without_its_primary_or_with_other_rows_is_refused(replay_service: Any, ask: Any, spec: Any) -> None:
    document = spec(name="recent", rows_of="replay").model_dump(mode="json")
    answer = ask("PUT", f"/{RECENT}", document)
    assert (answer.status, answer.content["kind"]) == (409, "table")
    assert (
        f"shares the rows of {REPLAY}, which is no table with rows of its own here; create it first" in answer.content["detail"]
    )
    create(ask, REPLAY, spec())
    answer = ask("PUT", f"/{RECENT}", {**document, "chunk_rows": 4})
    assert (answer.status, answer.content["kind"]) == (422, "config")
    assert "chunk_rows of table recent must be that of table replay, whose rows it shares: 1, got 4" in answer.content["detail"]
    answer = ask("PUT", f"/{RECENT}", {**document, "rows": [["observation", "<f4", [3]]]})
    assert (answer.status, answer.content["kind"]) == (409, "schema")
    answer = ask("PUT", "/run-abc123.other", document)
    assert (answer.status, "they must end alike to share rows" in answer.content["detail"]) == (422, True)
    assert [table["id"] for table in ask("GET", "").content["tables"]] == [REPLAY]


def test_a_primary_that_is_shared_is_dropped_only_with_those_that_share_it(
    replay_service: Any, ask: Any, spec: Any, store: Store
) -> None:
    create(ask, REPLAY, spec())
    create(ask, RECENT, spec(name="recent", rows_of="replay"))
    answer = ask("DELETE", f"/{REPLAY}")
    assert (answer.status, answer.content["kind"]) == (409, "table")
    assert f"its rows are shared by {RECENT}; drop these first, or all with ?with_shared=true" in answer.content["detail"]
    assert ask("DELETE", f"/{RECENT}").status == 200
    create(ask, RECENT, spec(name="recent", rows_of="replay"))
    assert ask("DELETE", f"/{REPLAY}?with_shared=true").status == 200
    assert ask("GET", "").content["tables"] == []
    assert store.client.hlen(keys.tables()) == 0


def test_rows_live_as_long_as_any_table_needs_them(
    *, replay_service: Any, ask: Any, write: Any, spec: Any, episodic: Any, store: Store, eventually: Any
) -> None:
    create(ask, REPLAY, spec(max_items=4))
    create(ask, RECENT, spec(name="recent", rows_of="replay"))
    writer = write(both=True)
    writer.append(episodic(4, episode_steps=9).rollout(10))
    writer.flush(deadline_s=10)
    assert ask("GET", f"/{REPLAY}").content["items"] == 4
    assert chunks(store) == 40
    assert ask("DELETE", f"/{RECENT}").status == 200
    writer.append(episodic(4, episode_steps=9).rollout(10))
    eventually(lambda: chunks(store) < 20)


def test_tables_over_the_same_rows_come_back_after_a_kill(
    *, replay_process: Any, ask: Any, write: Any, spec: Any, episodic: Any
) -> None:
    process = replay_process()
    create(ask, REPLAY, spec(sampler=Prioritized()))
    create(ask, RECENT, spec(name="recent", rows_of="replay", max_items=20))
    writer, source = write(both=True, table_spec=spec(sampler=Prioritized())), episodic(4, episode_steps=9)
    writer.append(source.rollout(10))
    writer.flush(deadline_s=10)
    before = {table: ask("GET", f"/{table}/items?order=oldest&limit=100").content for table in (REPLAY, RECENT)}
    process.kill()
    process.start()
    writer.append(source.rollout(1))
    writer.flush(deadline_s=20)
    after = {table: ask("GET", f"/{table}/items?order=oldest&limit=100").content for table in (REPLAY, RECENT)}
    for table, kept in ((REPLAY, 36), (RECENT, 16)):
        known = {item["key"]: item["rows"] for item in after[table]["items"]}
        assert len([item for item in before[table]["items"] if known.get(item["key"]) == item["rows"]]) >= kept


# --- removal -------------------------------------------------------------------------------------------------------------


def test_a_reset_empties_one_table_and_recovery_agrees(
    *, replay_process: Any, ask: Any, write: Any, spec: Any, episodic: Any, store: Store, eventually: Any
) -> None:
    process = replay_process()
    create(ask, REPLAY, spec())
    create(ask, RECENT, spec(name="recent", rows_of="replay"))
    writer, source = write(both=True), episodic(4, episode_steps=9)
    writer.append(source.rollout(10))
    writer.flush(deadline_s=10)
    assert ask("DELETE", f"/{REPLAY}/items").content == {"deleted": 36}
    assert ask("POST", f"/{REPLAY}/reset").content == {"deleted": 0}
    told = ask("GET", f"/{REPLAY}").content
    assert (told["items"], told["inserted"], told["resets"]) == (0, 0, 2)
    assert ask("GET", f"/{RECENT}").content["items"] == 36
    process.kill()
    process.start()
    assert ask("GET", f"/{REPLAY}").content["items"] == 0
    assert ask("GET", f"/{RECENT}").content["items"] == 36
    writer.append(source.rollout(10))
    writer.flush(deadline_s=20)
    assert ask("GET", f"/{REPLAY}").content["items"] == 36


def test_items_are_found_and_deleted_by_key(*, replay_service: Any, ask: Any, write: Any, spec: Any, episodic: Any) -> None:
    create(ask, REPLAY, spec())
    writer = write()
    written = writer.append(episodic(4, episode_steps=9).rollout(10)).keys["replay"]
    writer.flush(deadline_s=10)
    asked = np.array([written[3], 5, written[0]], np.uint64)
    answer = ask("POST", f"/{REPLAY}/items/find", body=asked.astype("<u8").tobytes())
    known = np.frombuffer(answer.body, "<u1", count=3)
    found: SampledItems = decode_items(answer.body, count=2, offset=3, table_items=36)
    assert known.tolist() == [1, 0, 1]
    assert found.keys.tolist() == [written[3], written[0]]
    assert found.probability == pytest.approx([1 / 36, 1 / 36])
    answer = ask("POST", f"/{REPLAY}/items/find", body=b"short")
    assert (answer.status, "keys to find are packed u8, 8 bytes each; got 5 bytes" in answer.content["detail"]) == (409, True)
    assert ask("POST", f"/{REPLAY}/items/delete", {"keys": [int(written[3]), 5]}).content == {"deleted": 1}
    assert ask("GET", f"/{REPLAY}").content["items"] == 35
    answer = ask("GET", f"/{REPLAY}/items/{written[3]}")
    assert (answer.status, answer.content["kind"]) == (404, "table")
    assert f"has no item with the key {written[3]} on shard 0; it was removed, or never there" in answer.content["detail"]
    assert ask("GET", f"/{REPLAY}/items/{written[0]}").content["rows"][0]["observation"] == [0.0, 0.0, 0.0]


# --- samples -------------------------------------------------------------------------------------------------------------


def test_a_request_without_batches_tells_how_the_shard_stands(
    *, replay_service: Any, ask: Any, write: Any, spec: Any, episodic: Any
) -> None:
    create(ask, REPLAY, spec(sampler=Prioritized(exponent=1.0)))
    empty = sample(ask, REPLAY)
    assert (empty.mass, empty.table_items, len(empty.counts)) == (0.0, 0, 0)
    writer = write(table_spec=spec(sampler=Prioritized(exponent=1.0)))
    writer.append(episodic(4, episode_steps=9).rollout(10, version=7))
    writer.flush(deadline_s=10)
    assert sample(ask, REPLAY).min_probability == 0.0, "only on request: it costs the shard a look"
    standing = sample(ask, REPLAY, wants_min_probability=True)
    assert (standing.table_items, standing.newest_version) == (36, 7)
    assert standing.mass == pytest.approx(36.0)
    assert standing.min_probability == pytest.approx(1 / 36)


def test_batches_of_different_sizes_come_in_one_reply_as_far_as_the_limiter_goes(
    *, replay_service: Any, ask: Any, write: Any, spec: Any, episodic: Any
) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=1, tolerance_items=10)
    table_spec = spec(limiter=limiter)
    create(ask, REPLAY, table_spec)
    writer = write(table_spec=table_spec)
    writer.append(episodic(4, episode_steps=9).rollout(2))
    writer.flush(deadline_s=10)
    reply = sample(ask, REPLAY, 4, 8, 8)
    assert reply.counts.tolist() == [4, 8]
    assert len(reply.items) == 12


def test_samples_that_count_when_consumed_do_not_hold_writers_up_before(
    *, replay_service: Any, ask: Any, write: Any, spec: Any, episodic: Any
) -> None:
    create(ask, REPLAY, spec())
    writer = write()
    writer.append(episodic(4, episode_steps=9).rollout(2))
    writer.flush(deadline_s=10)
    sample(ask, REPLAY, 5, count_when_consumed=True)
    assert ask("GET", f"/{REPLAY}").content["sampled"] == 0
    sample(ask, REPLAY, 5, count_when_consumed=True, consumed=5)
    assert ask("GET", f"/{REPLAY}").content["sampled"] == 5


# --- inspection ----------------------------------------------------------------------------------------------------------


def test_the_histogram_counts_every_item_once(*, replay_service: Any, ask: Any, write: Any, spec: Any, episodic: Any) -> None:
    create(ask, REPLAY, spec())
    writer = write()
    writer.append(episodic(4, episode_steps=9).rollout(10))
    writer.flush(deadline_s=10)
    told = ask("GET", f"/{REPLAY}/priorities/histogram?bins=5").content
    assert (told["items"], sum(told["counts"]) + told["zeros"], told["max"]) == (36, 36, 1.0)
    assert ask("GET", f"/{REPLAY}/priorities/histogram?bins=0").status == 422


def test_the_limiter_tells_its_numbers_and_who_waits(
    *, replay_service: Any, ask: Any, write: Any, spec: Any, episodic: Any, eventually: Any
) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=10, tolerance_items=10)
    table_spec = spec(limiter=limiter, batch_items=4)
    create(ask, REPLAY, table_spec)
    told = ask("GET", f"/{REPLAY}/limiter").content
    assert (told["min_diff"], told["max_diff"], told["diff"], told["batch_items"]) == (0.0, 20.0, 0.0, 4)
    assert (told["can_insert_one"], told["can_sample_one"], told["can_sample_batch"]) == (True, False, False)
    assert "waiting for min_items 10, have 0" in told["samplers_wait_for"]
    writer = write(table_spec=table_spec)
    writer.append(episodic(4, episode_steps=9).rollout(10))
    told = eventually(lambda: (told := ask("GET", f"/{REPLAY}/limiter").content)["writers_waiting"] and told)
    assert (told["inserted"], told["can_insert_one"], told["can_sample_batch"]) == (20, False, True)
    assert told["writers_waiting"][0]["writer"] == writer.writer_id
    assert told["writers_waiting"][0]["waited_s"] >= 0.0
    assert "writers are ahead of the ratio" in told["writers_wait_for"]


def test_items_of_an_encoded_table_are_shown_as_they_are_stored(
    *, replay_service: Any, ask: Any, write: Any, spec: Any, episodic: Any
) -> None:
    table_spec = spec(encoding="zstd", delta=True, chunk_rows=4)
    create(ask, REPLAY, table_spec)
    writer = write(table_spec=table_spec)
    writer.append(episodic(4, episode_steps=19).rollout(20))
    writer.flush(deadline_s=10)
    item = ask("GET", f"/{REPLAY}/items?order=newest&limit=1").content["items"][0]
    assert [(row["observation"], row["reward"]) for row in item["rows"]] == [
        ([float(at), float(item["environment"]), 0.0], float(at))
        for at in range(item["start_row"], item["start_row"] + item["length"])
    ]


def test_a_wrong_name_is_answered_with_the_tables_that_there_are(replay_service: Any, ask: Any, spec: Any) -> None:
    create(ask, REPLAY, spec())
    for method, path in (("GET", ""), ("GET", "/items"), ("GET", "/limiter"), ("PATCH", ""), ("POST", "/reset")):
        answer = ask(method, f"/run-abc123.reply{path}", {} if method == "PATCH" else None)
        assert (answer.status, answer.content["kind"]) == (404, "table")
        assert f"there are: {REPLAY}" in answer.content["detail"]


# --- live change ---------------------------------------------------------------------------------------------------------


def test_a_limiter_that_can_deadlock_is_refused_with_the_inequality_and_nothing_changes(
    replay_service: Any, ask: Any, spec: Any
) -> None:
    create(ask, REPLAY, spec(batch_items=64))
    wrong = {"kind": "sample_to_insert_ratio", "samples_per_insert": 4.0, "min_items": 10, "tolerance_items": 10}
    answer = ask("PATCH", f"/{REPLAY}", {"limiter": wrong})
    assert (answer.status, "2 * tolerance_items >= batch_items + samples_per_insert fails" in answer.content["detail"]) == (
        422,
        True,
    )
    assert ask("GET", f"/{REPLAY}").content["spec"]["limiter"] == {"kind": "min_size", "min_items": 1}
    answer = ask("PATCH", f"/{REPLAY}", {"limiter": {**wrong, "tolerance_items": 100}, "max_items": 500})
    assert (answer.status, answer.content["spec"]["limiter"]["tolerance_items"], answer.content["max_items"]) == (200, 100, 500)


def test_a_change_lets_those_go_on_who_waited(
    *, replay_service: Any, ask: Any, write: Any, spec: Any, episodic: Any, store: Store
) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=10, tolerance_items=10)
    create(ask, REPLAY, spec(limiter=limiter))
    writer = write(table_spec=spec(limiter=limiter))
    writer.append(episodic(4, episode_steps=9).rollout(10))
    assert ask("PATCH", f"/{REPLAY}", {"limiter": MinSize().model_dump(mode="json")}).status == 200
    writer.flush(deadline_s=10)
    assert ask("GET", f"/{REPLAY}").content["items"] == 36
    assert b'"min_size"' in store.client.hget(keys.tables(), REPLAY)


def test_a_table_that_would_not_fit_is_refused_with_the_figures(replay_service: Any, ask: Any, spec: Any, store: Store) -> None:
    create(ask, REPLAY, spec(max_items=1000))
    store.client.config_set("maxmemory", "20mb")
    try:
        document = spec(max_items=1_000_000).model_dump(mode="json")
        answer = ask("PUT", "/run-abc123.large", document)
        assert (answer.status, answer.content["kind"]) == (422, "config")
        assert "with max_items 1000000 will need" in answer.content["detail"]
        assert "and Redis has maxmemory 20 MiB; lower max_items to " in answer.content["detail"]
        fits = int(answer.content["detail"].split("lower max_items to ")[1].split(",")[0])
        assert ask("PUT", "/run-abc123.large", {**document, "max_items": fits - 1000}).status == 200
        answer = ask("PATCH", "/run-abc123.large", {"max_items": 1_000_000})
        assert (answer.status, "lower max_items" in answer.content["detail"]) == (422, True)
    finally:
        store.client.config_set("maxmemory", "0")


def test_specs_of_another_release_are_left_alone(replay_process: Any, ask: Any, spec: Any, store: Store) -> None:
    store.client.hset(keys.tables(), "run-abc123.strange", '{"name": "strange", "sampler": {"kind": "of the future"}}')
    replay_process()
    create(ask, REPLAY, spec())
    assert [table["id"] for table in ask("GET", "").content["tables"]] == [REPLAY]
    assert store.client.hexists(keys.tables(), "run-abc123.strange")


def test_waiting_samplers_of_a_dropped_table_are_told(*, replay_service: Any, ask: Any, spec: Any, eventually: Any) -> None:
    import threading

    create(ask, REPLAY, spec())
    answers: list[Any] = []
    request = encode_request(SampleRequest(counts=np.array([1], np.uint32), deadline_ms=15_000))
    thread = threading.Thread(target=lambda: answers.append(ask("POST", f"/{REPLAY}/samples", body=request)))
    thread.start()
    eventually(lambda: ask("GET", f"/{REPLAY}").content["samplers_waiting"] == 1)
    assert ask("DELETE", f"/{REPLAY}").status == 200
    thread.join(timeout=10)
    assert answers[0].status == 409
    assert "was dropped" in answers[0].content["detail"]
    assert TableError.__name__ == answers[0].content["title"]
