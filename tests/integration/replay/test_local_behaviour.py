"""What holds for a replay service and for a `LocalReplay` alike: the same calls, the same results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, SchemaMismatch, TableError
from rollstream.replay import Fifo, MinSize, NStep, Prioritized, SampleToInsertRatio, TableClient, TableSpec, TableWriter, Uniform
from rollstream.replay.local import LocalReplay
from rollstream.replay.rules import EachRow, ItemRule
from rollstream.spaces import Column, Flag, RowSpec
from rollstream.store import Address, Store

ROWS = RowSpec((Column(name="number", dtype="<i8"), Column(name="vector", dtype="<f4", shape=(3,))))


class Replay(Protocol):
    """What both give."""

    def create(self, spec: TableSpec) -> None: ...

    def writer(self, table: str, rule: ItemRule | None = None, *, environments: int, **options: Any) -> TableWriter: ...

    def client(self, table: str, **options: Any) -> TableClient: ...


class Service:
    """Tables of a replay service, called as those of a `LocalReplay`."""

    def __init__(self, store: Store, address: Address) -> None:
        self._store, self._address = store, address
        self._clock = SystemClock()
        self._specs: dict[str, TableSpec] = {}

    def create(self, spec: TableSpec) -> None:
        client = self.client(spec.name)
        client.create(spec)
        client.close()
        self._specs[spec.name] = spec

    def writer(self, table: str, rule: ItemRule | None = None, *, environments: int, **options: Any) -> TableWriter:
        return TableWriter(
            self._store,
            self._address,
            table_id=f"local.{table}",
            spec=self._specs[table],
            rule=rule,
            environments=environments,
            clock=self._clock,
            **options,
        )

    def client(self, table: str, **options: Any) -> TableClient:
        return TableClient(self._store, self._address, table_id=f"local.{table}", clock=self._clock, **options)


@pytest.fixture(params=["local", "service"])
def replay(request: pytest.FixtureRequest, store: Store, address: Address) -> Iterator[Replay]:
    if request.param == "service":
        request.getfixturevalue("replay_service")
        yield Service(store, address)
        return
    with LocalReplay(store=store, address=address) as made:
        yield made


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Closes writers and clients before the replay."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def table(replay: Replay, opened: ExitStack) -> Callable[..., tuple[TableWriter, TableClient]]:
    """Makes a table `replay`, and one writer and one client of it."""

    def make(rule: ItemRule | None = None, *, environments: int = 1, **changes: Any) -> tuple[TableWriter, TableClient]:
        spec = TableSpec.model_validate({"name": "replay", "max_items": 1000, "rows": ROWS, **changes})
        replay.create(spec)
        writer, client = replay.writer("replay", rule or EachRow(), environments=environments), replay.client("replay")
        opened.callback(writer.close)
        opened.callback(client.close)
        return writer, client

    return make


def rows(count: int, *, first: int = 0, ends: bool = False) -> np.ndarray:
    """Rows whose columns hold their number; with `ends` one episode."""
    made = np.zeros(count, ROWS.dtype)
    made["number"] = np.arange(first, first + count)
    made["vector"] = made["number"][:, None] * np.array([1.0, 2.0, 4.0])
    made["flags"][:1] = Flag.FIRST
    if ends:
        made["flags"][-1] |= Flag.FINAL | Flag.TERMINATED
    return made


def append(writer: TableWriter, count: int, *, first: int = 0, ends: bool = False, flush: bool = True) -> np.ndarray:
    """Write so many rows of one environment; returns the new items' keys."""
    written = writer.append_rows(rows(count, first=first, ends=ends), np.array([0, count]), deadline_s=5.0)
    if flush:
        writer.flush(deadline_s=10.0)
    return written.keys["replay"]


def eventually(ask: Callable[[], Any], wanted: Any) -> None:
    """Changes go by the log, so a service needs a moment."""
    clock = SystemClock()
    for _ in range(500):
        if ask() == wanted:
            return
        clock.sleep(0.02)
    assert ask() == wanted


def test_what_is_sampled_is_what_was_written(table: Any) -> None:
    writer, client = table(NStep(2), sampler=Fifo(), max_times_sampled=1)
    keys = append(writer, 6, ends=True)
    batch = client.sample(batch_items=5, deadline_s=10.0)
    assert batch.keys.tolist() == keys.tolist()
    assert batch.lengths.tolist() == [3, 3, 3, 3, 2]
    assert batch.rows["number"][:4].tolist() == [[at, at + 1, at + 2] for at in range(4)]
    assert batch.rows["vector"][1, 2].tolist() == [3.0, 6.0, 12.0]
    assert batch.mask[4].tolist() == [True, True, False]
    assert batch.rows["flags"][4].tolist() == [0, Flag.FINAL | Flag.TERMINATED, Flag.PAD]


def test_priorities_decide_what_is_drawn(table: Any) -> None:
    writer, client = table(sampler=Prioritized(exponent=1.0))
    keys = append(writer, 20)
    client.update_priorities(keys, np.where(np.arange(20) == 7, 3.0, 0.0))
    eventually(lambda: client.info()["priorities_updated"], 20)
    batch = client.sample(batch_items=64, deadline_s=10.0)
    assert set(batch.keys.tolist()) == {int(keys[7])}
    assert batch.probability.tolist() == [1.0] * 64
    assert batch.priority.tolist() == [3.0] * 64


def test_bad_priorities_and_unknown_keys_are_told_and_harm_nothing(table: Any) -> None:
    writer, client = table(sampler=Prioritized())
    keys = append(writer, 4)
    unknown = np.array([1 << 40], np.uint64)
    refused = client.update_priorities(keys, np.array([1.0, np.nan, -1.0, np.inf]))
    assert (refused.sent, refused.refused) == (1, 3)
    assert client.update_priorities(unknown, np.ones(1), report_unknown=True).unknown == 1
    assert client.known(np.concatenate([keys, unknown])).tolist() == [True] * 4 + [False]
    assert len(client.sample(batch_items=8, deadline_s=10.0)) == 8


def test_items_are_got_by_their_keys_and_deleted(table: Any) -> None:
    writer, client = table()
    keys = append(writer, 10)
    assert client.get(keys[[7, 2]]).rows["number"][:, 0].tolist() == [7, 2]
    client.delete_items(keys[:5])
    eventually(lambda: client.info()["items"], 5)
    with pytest.raises(TableError, match="does not hold 1 of 2 keys"):
        client.get(keys[[4, 5]])
    assert client.reset() == 5
    assert client.info()["items"] == 0
    append(writer, 3, first=10)
    assert sorted(client.sample(batch_items=32, deadline_s=10.0).rows["number"].reshape(-1).tolist())[0] >= 10


def test_a_full_table_lets_its_oldest_items_go(table: Any) -> None:
    writer, client = table(max_items=8)
    keys = append(writer, 20)
    assert client.info()["items"] == 8
    assert client.known(keys).tolist() == [False] * 12 + [True] * 8
    assert [item["rows"][0]["number"] for item in client.items(order="oldest", limit=2)] == [12, 13]


def test_a_sampler_waits_with_a_deadline_and_says_for_what(table: Any) -> None:
    writer, client = table(limiter=MinSize(min_items=50))
    append(writer, 10)
    with pytest.raises(DeadlineExceeded, match=r"waiting for min_items 50, have 10: writers must insert"):
        client.sample(batch_items=4, deadline_s=0.3)
    assert not client.can_sample(batch_items=4)
    append(writer, 40, first=10)
    assert len(client.sample(batch_items=4, deadline_s=10.0)) == 4


def test_a_writer_waits_with_a_deadline_and_goes_on_when_somebody_samples(table: Any) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=2, tolerance_items=4.0)
    writer, client = table(limiter=limiter, unread_entries=1)
    append(writer, 20, flush=False)
    with pytest.raises(DeadlineExceeded, match=r"samplers must sample"):
        append(writer, 1, first=20)
    drawn = 0
    while drawn < 15:
        drawn += len(client.sample(batch_items=1, deadline_s=10.0))
    writer.flush(deadline_s=10.0)
    assert client.info()["items"] == 20


def test_settings_change_on_the_living_table_and_impossible_ones_are_refused(table: Any) -> None:
    writer, client = table(max_items=100)
    append(writer, 50)
    assert client.change({"max_items": 10}).max_items == 10
    assert client.info()["items"] == 10
    with pytest.raises(ConfigError, match=r"chunk_rows of table local.replay cannot change, got 4"):
        client.change({"chunk_rows": 4})
    with pytest.raises(ConfigError, match="must be > 0, got -1"):
        client.change(
            {"limiter": {"kind": "sample_to_insert_ratio", "samples_per_insert": -1, "min_items": 1, "tolerance_items": 5}}
        )


def test_two_tables_share_rows(replay: Replay, opened: ExitStack) -> None:
    replay.create(TableSpec(name="all", max_items=100, rows=ROWS))
    replay.create(TableSpec(name="recent", max_items=3, rows=ROWS, rows_of="all", sampler=Uniform()))
    writer = replay.writer("all", environments=1, tables={"all": EachRow(), "recent": NStep(1)})
    everything, recent = replay.client("all"), replay.client("recent")
    for close in (writer.close, everything.close, recent.close):
        opened.callback(close)
    written = writer.append_rows(rows(8), np.array([0, 8]))
    writer.flush(deadline_s=10.0)
    assert {name: len(keys) for name, keys in written.keys.items()} == {"all": 8, "recent": 7}
    assert (everything.info()["items"], recent.info()["items"]) == (8, 3)
    assert sorted(item["start_row"] for item in recent.items(order="newest")) == [4, 5, 6]
    assert recent.sample(batch_items=8, deadline_s=10.0).rows["number"].min() >= 4


def test_a_table_moves_to_another_through_a_buffer(table: Any, replay: Replay, opened: ExitStack) -> None:
    writer, client = table(sampler=Prioritized(exponent=1.0))
    keys = append(writer, 30)
    client.update_priorities(keys, np.arange(30.0))
    eventually(lambda: client.info()["priorities_updated"], 30)
    exported = client.export(rows_max_bytes=1 << 30)
    replay.create(TableSpec(name="copy", max_items=1000, rows=ROWS, sampler=Prioritized(exponent=1.0)))
    copy = replay.client("copy")
    opened.callback(copy.close)
    assert copy.restore(exported) == 30
    got = copy.get(keys)
    assert got.priority.tolist() == list(range(30))
    assert got.rows["number"][:, 0].tolist() == list(range(30))
    assert len(copy.sample(batch_items=16, deadline_s=10.0)) == 16


def test_rows_of_another_layout_are_refused_by_column(table: Any) -> None:
    writer, client = table()
    append(writer, 1)
    other = RowSpec((Column(name="number", dtype="<i4"), Column(name="vector", dtype="<f4", shape=(3,))))
    with pytest.raises(SchemaMismatch, match=r"number <i8\[\] where .* number <i4"):
        client.create(TableSpec(name="replay", max_items=1000, rows=other))
    with pytest.raises(SchemaMismatch, match="use the table's spec to make rows"):
        writer.append_rows(np.zeros(1, other.dtype), np.array([0, 1]))


def test_a_batch_that_can_never_come_is_refused_at_once(table: Any) -> None:
    _, client = table(limiter=SampleToInsertRatio(samples_per_insert=1.0, min_items=10, tolerance_items=8.0))
    with pytest.raises(TableError, match="can never serve this batch: 2 .* tolerance_items >= batch_items"):
        client.sample(batch_items=64, deadline_s=10.0)


def test_a_seed_gives_the_same_samples_again(table: Any) -> None:
    writer, client = table()
    append(writer, 100)
    drawn = [client.sample(batch_items=10, deadline_s=10.0).rows["number"].reshape(-1).tolist() for _ in range(3)]
    assert len(set(itertools.chain(*drawn))) > 10
    assert drawn[0] != drawn[1]
