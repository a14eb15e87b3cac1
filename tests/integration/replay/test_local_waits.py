"""A `LocalReplay` with others: nothing of it hangs, and nobody takes part by mistake."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, LeaseLost, SchemaMismatch, StoreRefused, TableError
from rollstream.replay import MinSize, NStep, SampleToInsertRatio, TableSpec, TableWriter
from rollstream.replay.local import LocalReplay
from rollstream.replay.local_requests import LocalLink
from rollstream.replay.rules import EachRow
from rollstream.spaces import Column, RowSpec
from rollstream.store import Address, Lease, Store, keys

ROWS = RowSpec((Column(name="number", dtype="<i8"),))
NARROW = SampleToInsertRatio(samples_per_insert=1.0, min_items=2, tolerance_items=4.0)


def spec(name: str = "numbers", **changes: Any) -> TableSpec:
    return TableSpec.model_validate({"name": name, "max_items": 1000, "rows": ROWS, **changes})


def append(writer: TableWriter, count: int, *, first: int = 0, deadline_s: float = 5.0) -> Any:
    rows = np.zeros(count, ROWS.dtype)
    rows["number"] = np.arange(first, first + count)
    return writer.append_rows(rows, np.array([0, count]), deadline_s=deadline_s)


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[LocalReplay]:
    with LocalReplay(tmp_path / "data", tables=[spec()]) as made:
        yield made


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A program of a library user, which tells on standard output how far it is."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, process.stderr and process.stderr.read()
    return line


def test_a_directory_in_use_is_refused(replay: LocalReplay, tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="already uses .*data"):
        LocalReplay(tmp_path / "data")


def test_shards_that_another_process_serves_are_refused_by_its_name(store: Store, address: Address) -> None:
    lease = Lease.acquire(store, key=keys.replay_lease(0), token_key=keys.replay_token(0), owner="replay-0", ttl_s=30.0)
    assert lease is not None
    with pytest.raises(ConfigError, match="replay shard 0 of this Redis is served by replay-0; use a TableClient"):
        LocalReplay(store=store, address=address, tables=[spec()])


def test_a_mixture_of_places_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="takes a directory, or a store with its address, or nothing"):
        LocalReplay(tmp_path, store=store)


def test_a_table_that_would_not_fit_into_memory_is_refused(tmp_path: Path) -> None:
    with LocalReplay(tmp_path, tables=[spec()], server_settings={"maxmemory": "64mb"}) as replay:
        with pytest.raises(ConfigError, match="table local.big with max_items 10000000 will need .* MiB in Redis"):
            replay.create(spec("big", max_items=10_000_000))
        with pytest.raises(ConfigError, match="table local.numbers with max_items 10000000 will need"):
            replay.create(spec(max_items=10_000_000))
        assert replay.tables == ("numbers",)
        assert replay.spec("numbers").max_items == 1000


def test_where_no_table_at_all_would_fit_only_more_memory_is_advised(tmp_path: Path) -> None:
    with (
        LocalReplay(tmp_path, server_settings={"maxmemory": "4mb"}) as replay,
        pytest.raises(
            ConfigError, match="table local.numbers with max_items 1000 will need .* maxmemory 4 MiB; raise maxmemory$"
        ),
    ):
        replay.create(spec())


FORKS = """
import os, sys
from rollstream.errors import ConfigError
from rollstream.replay import LocalReplay, TableSpec
with LocalReplay(tables=[TableSpec(name="numbers", max_items=10, rows=[("number", "<i8", ())])]) as replay:
    replay.load("numbers", {"number": [1, 2, 3]})
    client = replay.client("numbers")
    child = os.fork()
    if child == 0:
        try:
            client.sample(batch_items=1, deadline_s=5.0)
        except ConfigError as error:
            print(error, flush=True)
        replay.close()
        os._exit(0)
    os.waitpid(child, 0)
    print(len(client.sample(batch_items=2, deadline_s=5.0)), flush=True)
    client.close()
"""


def test_a_forked_child_is_refused_and_its_parent_goes_on() -> None:
    program = python(FORKS)
    assert "and is used in process" in line_of(program)
    assert line_of(program) == "2"
    assert program.wait(timeout=20) == 0


def test_a_wrong_table_name_lists_the_tables(replay: LocalReplay) -> None:
    with pytest.raises(TableError, match="there is no table 'number' in this replay; there are: numbers"):
        replay.client("number")
    with pytest.raises(
        ConfigError, match="has rows_of 'all', and there is no table local.all with rows of its own; there are: local"
    ):
        replay.create(spec("recent", rows_of="all"))
    with pytest.raises(SchemaMismatch, match="number <i8"):
        replay.create(spec("recent", rows_of="numbers", rows=[["number", "<f4", []]]))
    assert not replay._store.client.hexists(keys.tables(), "local.recent")


@pytest.mark.parametrize("path", ["/v1/tables/local.numbers/nothing", "/v2/tables"])
def test_a_request_that_a_shard_does_not_know_is_refused(replay: LocalReplay, path: str) -> None:
    link = LocalLink(replay._shards, shard=0)
    with pytest.raises(TableError, match=f"LocalReplay knows no request GET .*{path[-7:]}"):
        link.request("GET", path, deadline_s=1.0)


def test_an_item_is_looked_at_by_its_key_and_the_limiter_by_its_numbers(replay: LocalReplay) -> None:
    loaded = replay.load("numbers", {"number": np.arange(5)})
    assert loaded.items == 5
    link = LocalLink(replay._shards, shard=0)
    with closing(replay.client("numbers")) as client:
        key = client.items(order="newest", limit=1)[0]["key"]
    item = link.request_json("GET", f"/v1/tables/local.numbers/items/{key}", deadline_s=1.0)
    assert (item["key"], item["rows"][0]["number"]) == (key, 4)
    with pytest.raises(TableError, match="table local.numbers has no item 12345; it was removed"):
        link.request_json("GET", "/v1/tables/local.numbers/items/12345", deadline_s=1.0)
    assert link.request_json("GET", "/v1/tables/local.numbers/limiter", deadline_s=1.0)["can_sample_one"]
    told = link.request_json("GET", "/v1/tables/local.numbers/priorities/histogram?bins=3", deadline_s=1.0)
    assert sum(told["counts"]) == 5
    assert link.request_json("POST", "/v1/tables/local.numbers/snapshot", deadline_s=10.0) == {"saved": True}
    assert link.request_json("DELETE", "/v1/tables/local.nothing", deadline_s=1.0) == {"deleted_keys": 0}


def test_a_closed_replay_serves_no_more(tmp_path: Path) -> None:
    replay = LocalReplay(tmp_path, tables=[spec()])
    shards = replay._shards
    replay.close()
    with pytest.raises(LeaseLost, match="is not held by this LocalReplay; it was closed"):
        shards._guard(0)("write", lambda pipeline: None)


def test_steps_of_many_environments_become_sequences_of_two_tables(replay: LocalReplay) -> None:
    replay.create(spec("recent", rows_of="numbers", max_items=5))
    with replay.trajectory_writer({"numbers": NStep(2), "recent": EachRow()}, environments=3) as writer:
        for step in range(40):
            writer.append({"number": np.arange(3) * 100 + step}, terminated=np.full(3, step % 10 == 9))
        writer.flush(deadline_s=10.0)
    with closing(replay.client("numbers")) as client, closing(replay.client("recent")) as recent:
        batch = client.sample(batch_items=64, deadline_s=5.0)
        whole = batch.lengths == 3
        assert whole.any()
        numbers = batch.rows["number"][whole & (batch.rows["flags"][:, -1] == 0)]
        assert np.array_equal(numbers[:, 2] - numbers[:, 0], np.full(len(numbers), 2))
        assert client.info()["items"] == 120
        assert recent.info()["items"] == 5


# --- nothing hangs -------------------------------------------------------------------------------------------------------

ALONE = """
import sys, numpy as np
from rollstream.errors import DeadlineExceeded
from rollstream.replay import MinSize, SampleToInsertRatio, TableSpec
from rollstream.replay.local import LocalReplay
from rollstream.replay.local_requests import LocalLink
from rollstream.replay.rules import EachRow
limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=2, tolerance_items=4.0)
spec = TableSpec(name="numbers", max_items=1000, rows=[("number", "<i8", ())], limiter=limiter, unread_entries=1)
with LocalReplay(tables=[spec]) as replay:
    writer, client = replay.writer("numbers", EachRow(), environments=1), replay.client("numbers")
    if sys.argv[1] == "sampler":
        try:
            client.sample(batch_items=2, deadline_s=3600.0)
        except DeadlineExceeded as error:
            print(error, flush=True)
    else:
        try:
            for _ in range(10):
                writer.append_rows(np.zeros(5, spec.row_spec.dtype), np.array([0, 5]), deadline_s=3600.0)
        except DeadlineExceeded as error:
            print(error, flush=True)
        print(len(client.sample(batch_items=4, deadline_s=3600.0)), flush=True)
    writer.close()
    client.close()
"""


def test_o21_a_sampler_alone_in_its_thread_is_told_at_once() -> None:
    program = python(ALONE, "sampler")
    said = line_of(program)
    assert "a batch of 2 items did not come" in said
    assert "waiting for min_items 2, have 0: writers must insert" in said
    assert "and no writer can come, for this is the only thread" in said
    assert program.wait(timeout=20) == 0


def test_o21_a_writer_alone_in_its_thread_is_told_at_once_and_sampling_lets_it_go_on() -> None:
    program = python(ALONE, "writer")
    said = line_of(program)
    assert "the writer waits, for writers are ahead of the ratio" in said
    assert "no sampler can come, for this is the only thread" in said
    assert line_of(program) == "4"
    assert program.wait(timeout=20) == 0


WAITS = """
import sys, threading, numpy as np
from rollstream.replay import SampleToInsertRatio, TableSpec
from rollstream.replay.local import LocalReplay
from rollstream.replay.local_requests import LocalLink
from rollstream.replay.rules import EachRow
threading.Thread(target=threading.Event().wait, daemon=True).start()  # somebody who might come
limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=2, tolerance_items=4.0)
spec = TableSpec(name="numbers", max_items=1000, rows=[("number", "<i8", ())], limiter=limiter, unread_entries=1)
with LocalReplay(tables=[spec]) as replay:
    writer, client = replay.writer("numbers", EachRow(), environments=1), replay.client("numbers")
    try:
        print("waiting", flush=True)
        if sys.argv[1] == "sampler":
            client.sample(batch_items=2, deadline_s=3600.0)
        for _ in range(10):
            writer.append_rows(np.zeros(5, spec.row_spec.dtype), np.array([0, 5]), deadline_s=3600.0)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    writer.close()
    client.close()
print("closed", flush=True)
"""


@pytest.mark.parametrize("who", ["sampler", "writer"])
def test_p6_ctrl_c_ends_a_wait_and_everything_is_closed_in_order(who: str) -> None:
    program = python(WAITS, who)
    assert line_of(program) == "waiting"
    SystemClock().sleep(1.0)
    program.send_signal(signal.SIGINT)
    assert line_of(program) == "interrupted"
    assert line_of(program) == "closed"
    assert program.wait(timeout=20) == 0


HAMMERED = """
import numpy as np
from rollstream.replay import EachRow, LocalReplay, TableSpec
spec = TableSpec(name="numbers", max_items=300, rows=[("number", "<i8", ())])
with LocalReplay(tables=[spec]) as replay:
    writer, client = replay.writer("numbers", EachRow(), environments=1), replay.client("numbers")
    print("working", flush=True)
    number, interrupts, rounds = 0, 0, 0
    hammered = True
    while hammered:
        try:
            while interrupts < 20 or rounds % 50:
                rounds += 1
                rows = np.zeros(100, spec.row_spec.dtype)
                rows["number"] = np.arange(number, number + 100)
                writer.append_rows(rows, np.array([0, 100]))
                number += 100
                client.sample(batch_items=64, deadline_s=10.0)
            hammered = False
        except KeyboardInterrupt:
            interrupts += 1
            print("interrupted", interrupts, flush=True)
    writer.flush(deadline_s=30.0)
    info = client.info()
    found = client.items(order="oldest", limit=300)
    numbers = {item["rows"][0]["number"] for item in found}
    print(int(info["items"]), len(found), len(numbers), len(client.sample(batch_items=256, deadline_s=10.0)), flush=True)
    writer.close()
    client.close()
"""


def test_an_index_that_is_interrupted_again_and_again_stays_whole() -> None:
    program = python(HAMMERED)
    assert line_of(program) == "working"
    said = ""
    while said != "interrupted 20":
        SystemClock().sleep(0.02)
        program.send_signal(signal.SIGINT)
        assert select.select([program.stdout], [], [], 20.0)[0], "an interrupt was lost"
        said = line_of(program)
        assert said.startswith("interrupted")
    items, found, numbers, drawn = map(int, line_of(program).split())
    assert (items, found, drawn) == (300, 300, 256)
    assert numbers >= 100, "a rollout may come twice when an append was cut off"
    assert program.wait(timeout=20) == 0


def test_p15_one_thread_that_only_inserts_is_told_who_waits_for_whom(replay: LocalReplay) -> None:
    replay.create(spec("narrow", limiter=NARROW, unread_entries=1))
    waits = pytest.raises(DeadlineExceeded, match="table local.narrow.*writers are ahead of the ratio.*samplers must sample")
    with closing(replay.writer("narrow", EachRow(), environments=1)) as writer, waits:
        for _ in range(10):
            append(writer, 5, deadline_s=0.5)


def test_p16_a_queue_gives_what_it_has_and_says_what_it_lacks(replay: LocalReplay) -> None:
    from rollstream.replay import queue_table

    replay.create(queue_table("queue", max_items=10, rows=ROWS))
    replay.load("queue", {"number": np.arange(3)})
    with closing(replay.client("queue")) as client:
        with pytest.raises(DeadlineExceeded, match="did not come within"):
            client.sample(batch_items=5, deadline_s=0.2)
        assert client.sample(batch_items=3, deadline_s=5.0).rows["number"][:, 0].tolist() == [0, 1, 2]


def test_a_writer_thread_and_a_sampler_thread_keep_the_ratio(replay: LocalReplay) -> None:
    replay.create(spec("narrow", limiter=NARROW, unread_entries=1, max_items=100))
    failures: list[BaseException] = []

    def write() -> None:
        try:
            with closing(replay.writer("narrow", EachRow(), environments=1)) as writer:
                for first in range(0, 600, 3):
                    append(writer, 3, first=first, deadline_s=30.0)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    seen: set[int] = set()
    with closing(replay.client("narrow")) as client:
        for _ in range(297):
            seen |= set(client.sample(batch_items=2, deadline_s=30.0).rows["number"].reshape(-1).tolist())
        thread.join(timeout=60)
        info = client.info()
    assert failures == []
    assert (info["inserted"], info["sampled"]) == (600, 594)
    assert max(seen) > 500


def test_sampling_stops_when_it_is_closed(tmp_path: Path) -> None:
    replay = LocalReplay(tmp_path, tables=[spec(limiter=MinSize(min_items=1))])
    client = replay.client("numbers")
    client.close()
    replay.close()
    replay.close()
    with LocalReplay(tmp_path) as again:
        assert again.tables == ("numbers",)


def test_several_shards_in_one_process_share_one_limiter_and_one_limit(tmp_path: Path) -> None:
    limiter = MinSize(min_items=150)
    with LocalReplay(tmp_path, tables=[spec(shards=3, limiter=limiter, max_items=300)]) as replay:
        replay.load("numbers", {"number": np.arange(120)})
        with closing(replay.client("numbers")) as client:
            with pytest.raises(DeadlineExceeded, match="min_items 150"):
                client.sample(batch_items=4, deadline_s=0.4)
            replay.load("numbers", {"number": np.arange(120, 240)})
            info = client.info()
            assert (info["items"], info["inserted"]) == (240, 240)
            drawn = np.concatenate([client.sample(batch_items=120, deadline_s=5.0).rows["number"][:, 0] for _ in range(20)])
            counts = np.bincount(drawn // 80, minlength=3)
            assert counts.min() > 640, "800 of 2,400 draws for each third, give or take seven deviations"
