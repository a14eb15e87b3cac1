"""A table over three shards is sampled as one: the same distribution, one batch of rows, and a shard that is away is waited for."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, TableError
from rollstream.replay import EachRow, Fifo, MinSize, Prioritized, SampleToInsertRatio, TableClient, TableWriter
from rollstream.replay.importance import importance_weights
from rollstream.replay.item_keys import shard_of
from rollstream.replay.position import read_position
from rollstream.replay.weighting import ImportanceWeights
from rollstream.store import Address, Store

SHARDS = 3


@pytest.fixture
def shards(replay_shard: Any) -> list[Any]:
    """Three running shards."""
    return [replay_shard(shard=shard) for shard in range(SHARDS)]


@pytest.fixture
def sharded_client(store: Store, address: Address, table_id: str) -> Iterator[Callable[..., TableClient]]:
    """Makes clients, and closes them."""
    made: list[TableClient] = []

    def make(**settings: Any) -> TableClient:
        made.append(TableClient(store, address, table_id=table_id, clock=SystemClock(), **settings))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def table_writer(store: Store, address: Address, table_id: str) -> Callable[..., TableWriter]:
    """Makes writers of one environment to one shard."""

    def make(table_spec: Any, shard: int) -> TableWriter:
        return TableWriter(
            store,
            address,
            table_id=table_id,
            spec=table_spec,
            rule=EachRow(),
            environments=1,
            shard=shard,
            clock=SystemClock(),
            deadline_s=30.0,
        )

    return make


@pytest.fixture
def fill(table_writer: Any, episodic: Any) -> Callable[..., np.ndarray]:
    """Writes items with given priorities, one row each, to one shard; returns their keys."""

    def write(table_spec: Any, shard: int, priorities: list[float], *, wait: bool = True) -> np.ndarray:
        writer = table_writer(table_spec, shard)
        source = episodic(1, episode_steps=100_000)
        source.row = 1000 * shard
        rollout = source.rollout(len(priorities))
        result = writer.append_rows(rollout.rows, rollout.offsets, priority=np.array(priorities, np.float32))
        if wait:
            writer.flush(deadline_s=10.0)
        writer.close()
        return result.keys["replay"]

    return write


PRIORITIES = [[1.0, 2.0, 3.0], [4.0], [0.5] * 10]


def surprise(observed: np.ndarray, expected: np.ndarray) -> float:
    """How many standard deviations chi-square lies above what chance gives (Wilson and Hilferty's normal approximation)."""
    freedom = len(observed) - 1
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))


def test_three_shards_give_the_distribution_of_one(shards: Any, sharded_client: Any, fill: Any, spec: Any) -> None:
    table_spec = spec(sampler=Prioritized(exponent=1.0), shards=SHARDS)
    client = sharded_client(seed=5)
    client.create(table_spec)
    item_keys = np.concatenate([fill(table_spec, shard, PRIORITIES[shard]) for shard in range(SHARDS)])
    expected = np.concatenate([np.array(each) for each in PRIORITIES])
    expected = expected / expected.sum()
    counts: dict[int, int] = dict.fromkeys(item_keys.tolist(), 0)
    for _ in range(60):
        sample = client.sample(batch_items=256, deadline_s=10)
        assert sample.table_items == len(item_keys)
        for key, probability in zip(sample.keys.tolist(), sample.probability.tolist(), strict=True):
            counts[key] += 1
            assert probability == pytest.approx(expected[item_keys.tolist().index(key)])
    observed = np.array(list(counts.values()), float)
    assert surprise(observed, expected * observed.sum()) < 4.0


def test_rows_of_all_shards_stand_with_their_items(shards: Any, sharded_client: Any, fill: Any, spec: Any) -> None:
    table_spec = spec(shards=SHARDS)
    client = sharded_client()
    client.create(table_spec)
    item_keys = np.stack([fill(table_spec, shard, [1.0] * 5) for shard in range(SHARDS)])
    row_of = {int(key): 1000 * shard + row for shard in range(SHARDS) for row, key in enumerate(item_keys[shard])}
    sample = client.sample(batch_items=64, deadline_s=10)
    assert sample.rows["observation"][:, 0, 0].tolist() == [row_of[key] for key in sample.keys.tolist()]
    shards_seen = shard_of(sample.keys)
    assert set(shards_seen.tolist()) == {0, 1, 2}
    assert (np.diff(shards_seen) < 0).any()  # not grouped by shard


def test_batches_asked_ahead_have_the_same_distribution(shards: Any, sharded_client: Any, fill: Any, spec: Any) -> None:
    table_spec = spec(sampler=Prioritized(exponent=1.0), shards=SHARDS)
    client = sharded_client(ahead_batches=4)
    client.create(table_spec)
    item_keys = np.concatenate([fill(table_spec, shard, PRIORITIES[shard]) for shard in range(SHARDS)])
    expected = np.concatenate([np.array(each) for each in PRIORITIES])
    drawn = np.concatenate([client.sample(batch_items=100, deadline_s=10).keys for _ in range(100)])
    observed = np.array([(drawn == key).sum() for key in item_keys], float)
    assert surprise(observed, expected / expected.sum() * observed.sum()) < 4.0


def test_a_shard_that_gets_items_late_is_sampled_by_one_who_asks_ahead(
    *, shards: Any, sharded_client: Any, fill: Any, spec: Any, eventually: Any
) -> None:
    table_spec = spec(sampler=Prioritized(exponent=1.0), shards=SHARDS)
    client = sharded_client(ahead_batches=4)
    client.create(table_spec)
    keys = [np.zeros(0, np.uint64), fill(table_spec, 1, PRIORITIES[1]), np.zeros(0, np.uint64)]
    for _ in range(10):
        assert set(shard_of(client.sample(batch_items=100, deadline_s=10).keys).tolist()) == {1}
    for shard in (0, 2):
        keys[shard] = fill(table_spec, shard, PRIORITIES[shard])
    eventually(lambda: set(shard_of(client.sample(batch_items=100, deadline_s=10).keys).tolist()) == {0, 1, 2})
    for _ in range(10):
        client.sample(batch_items=100, deadline_s=10)  # asked for while the masses were others
    drawn = np.concatenate([client.sample(batch_items=100, deadline_s=10).keys for _ in range(100)])
    observed = np.array([(drawn == key).sum() for key in np.concatenate(keys)], float)
    expected = np.concatenate([np.array(each) for each in PRIORITIES])
    assert surprise(observed, expected / expected.sum() * observed.sum()) < 4.0


def test_importance_weights_are_those_of_the_whole_table(shards: Any, sharded_client: Any, fill: Any, spec: Any) -> None:
    table_spec = spec(sampler=Prioritized(exponent=1.0), shards=SHARDS)
    client = sharded_client(importance=ImportanceWeights(beta=0.7, normalize="table"))
    client.create(table_spec)
    for shard in range(SHARDS):
        fill(table_spec, shard, PRIORITIES[shard])
    sample = client.sample(batch_items=128, deadline_s=10)
    rarest = 0.5 / 15.0
    wanted = importance_weights(sample.probability, 14, beta=0.7, normalize="table", min_probability=rarest)
    assert sample.weights == pytest.approx(wanted)


def test_a_shard_without_items_gives_none(shards: Any, sharded_client: Any, fill: Any, spec: Any) -> None:
    table_spec = spec(shards=SHARDS)
    client = sharded_client()
    client.create(table_spec)
    fill(table_spec, 1, [1.0] * 4)
    assert set(shard_of(client.sample(batch_items=32, deadline_s=10).keys).tolist()) == {1}
    assert client.can_sample(batch_items=32)


def test_an_empty_table_is_waited_for(shards: Any, sharded_client: Any, fill: Any, spec: Any) -> None:
    table_spec = spec(shards=SHARDS)
    client = sharded_client()
    client.create(table_spec)
    assert not client.can_sample(batch_items=8)
    with pytest.raises(DeadlineExceeded, match="a batch of 8 items did not come within .* none of its 3 shards holds an item"):
        client.sample(batch_items=8, deadline_s=0.3)
    later = threading.Timer(0.3, fill, (table_spec, 2, [1.0] * 4))
    later.start()
    assert len(client.sample(batch_items=8, deadline_s=10)) == 8
    later.join()


def test_the_limiter_counts_over_all_shards(shards: Any, sharded_client: Any, fill: Any, spec: Any) -> None:
    table_spec = spec(shards=SHARDS, limiter=MinSize(min_items=9))
    client = sharded_client()
    client.create(table_spec)
    for shard in range(2):
        fill(table_spec, shard, [1.0] * 4)
    with pytest.raises(DeadlineExceeded, match="a batch of 16 items did not come within .*min_items 9"):
        client.sample(batch_items=16, deadline_s=0.6)
    fill(table_spec, 2, [1.0] * 4)
    sample = client.sample(batch_items=300, deadline_s=10)
    assert set(shard_of(sample.keys).tolist()) == {0, 1, 2}  # split anew when the third shard had items
    assert client.info()["sampled"] == 300


def test_a_shard_that_is_away_is_waited_for_and_named(
    *, shards: Any, replay_shard: Any, sharded_client: Any, fill: Any, spec: Any
) -> None:
    table_spec = spec(shards=SHARDS)
    client = sharded_client()
    client.create(table_spec)
    for shard in range(SHARDS):
        fill(table_spec, shard, [1.0] * 4)
    client.sample(batch_items=16, deadline_s=10)
    shards[1].stop()
    with pytest.raises(DeadlineExceeded, match="replay shard 1 did not serve POST .*/samples"):
        client.sample(batch_items=16, deadline_s=0.5)
    assert not client.can_sample(batch_items=16)
    replay_shard(shard=1)
    drawn = np.concatenate([client.sample(batch_items=16, deadline_s=20).keys for _ in range(4)])
    assert set(shard_of(drawn).tolist()) == {0, 1, 2}


def test_keys_find_their_shards(*, shards: Any, sharded_client: Any, fill: Any, spec: Any, eventually: Any) -> None:
    table_spec = spec(sampler=Prioritized(exponent=1.0), shards=SHARDS)
    client = sharded_client()
    client.create(table_spec)
    item_keys = np.concatenate([fill(table_spec, shard, [2.0] * 4) for shard in range(SHARDS)])
    mixed = np.random.default_rng(0).permutation(item_keys)
    sample = client.get(mixed)
    assert sample.keys.tolist() == mixed.tolist()
    assert sample.probability.tolist() == pytest.approx([1 / 12] * 12)
    assert sample.table_items == 12
    rows = {int(key): int(row) for key, row in zip(sample.keys, sample.rows["observation"][:, 0, 0], strict=True)}
    assert [rows[int(key)] for key in item_keys] == [0, 1, 2, 3, 1000, 1001, 1002, 1003, 2000, 2001, 2002, 2003]
    assert client.update_priorities(mixed, np.arange(12.0)).sent == 12
    eventually(lambda: client.info()["priorities_updated"] == 12)
    assert client.get(mixed).priority.tolist() == list(range(12))
    stranger = np.array([mixed[0], np.uint64(200) << np.uint64(56)], np.uint64)  # there is no shard 200
    result = client.update_priorities(stranger, np.ones(2), report_unknown=True)
    assert (result.sent, result.unknown) == (1, 1)
    client.delete_items(mixed[:6])
    eventually(lambda: client.info()["items"] == 6)
    assert client.known(mixed).tolist() == [False] * 6 + [True] * 6
    assert client.reset() == 6
    assert client.info()["items"] == 0


def test_numbers_are_summed_and_words_name_their_shard(shards: Any, sharded_client: Any, fill: Any, spec: Any) -> None:
    table_spec = spec(shards=SHARDS, max_items=100, limiter=MinSize(min_items=50))
    client = sharded_client()
    client.create(table_spec)
    for shard in range(SHARDS):
        fill(table_spec, shard, [1.0 + shard] * 4)
    told = client.describe()
    assert (told["items"], told["max_items"], told["max_priority"]) == (12, 100, 3.0)
    assert told["samplers_wait_for"].startswith("shard 0: ")
    assert "; shard 2: " in told["samplers_wait_for"]
    assert [item["priority"] for item in client.items(order="priority", limit=5)] == [3.0] * 4 + [2.0]
    assert len(client.items(order="newest", limit=6)) == 6


def test_a_change_is_made_on_all_shards_or_on_none(shards: Any, sharded_client: Any, spec: Any) -> None:
    client = sharded_client()
    client.create(spec(shards=SHARDS))
    assert client.change({"max_items": 500}).max_items == 500
    shards[2].stop()
    with pytest.raises(DeadlineExceeded, match="replay shard 2 did not serve PATCH"):
        client.change({"max_items": 700}, deadline_s=0.4)
    assert client.spec().max_items == 500
    with pytest.raises(ConfigError, match="chunk_rows of table run-abc123.replay cannot change"):
        client.change({"chunk_rows": 4})


def test_a_batch_that_can_never_be_served_is_refused_at_once(shards: Any, sharded_client: Any, spec: Any) -> None:
    client = sharded_client()
    client.create(spec(shards=SHARDS, limiter=SampleToInsertRatio(samples_per_insert=1.0, min_items=10, tolerance_items=100)))
    with pytest.raises(TableError, match=r"can never serve this batch: 2 \* tolerance_items >= batch_items"):
        client.sample(batch_items=256, deadline_s=10)


def test_a_queue_has_one_shard(spec: Any) -> None:
    with pytest.raises(ConfigError, match="shards == 1 fails: 3"):
        spec(shards=SHARDS, sampler=Fifo())


def test_shards_whose_writers_wait_share_what_samplers_let_them_insert(
    *, store: Store, table_writer: Any, shards: Any, sharded_client: Any, episodic: Any, table_id: str, spec: Any
) -> None:
    """Nearly all samples come from shard 0; its writer may not take all the room that they make."""
    ratio = SampleToInsertRatio(samples_per_insert=8.0, min_items=60, tolerance_items=600.0)
    table_spec = spec(sampler=Prioritized(exponent=1.0), shards=SHARDS, limiter=ratio, max_items=3000)
    client = sharded_client()
    client.create(table_spec)
    over = threading.Event()

    def write(shard: int) -> None:
        writer = table_writer(table_spec, shard)
        source = episodic(1, episode_steps=100_000)
        priority = np.full(8, 100.0 if shard == 0 else 1.0, np.float32)
        while not over.is_set():
            rollout = source.rollout(len(priority))
            writer.append_rows(rollout.rows, rollout.offsets, priority=priority)
        writer.close()

    writers = [threading.Thread(target=write, args=(shard,)) for shard in range(SHARDS)]
    for writer in writers:
        writer.start()
    sampled = np.zeros(SHARDS, int)
    for _ in range(250):
        sampled += np.bincount(shard_of(client.sample(batch_items=256, deadline_s=30).keys), minlength=SHARDS)
    inserted = [read_position(store, table_id=table_id, shard=shard).inserted for shard in range(SHARDS)]
    over.set()
    client.change({"limiter": {"kind": "min_size", "min_items": 60}})
    for writer in writers:
        writer.join()
    assert sampled[0] > 10 * sampled[1:].max()
    assert min(inserted) > 0.25 * max(inserted), inserted
