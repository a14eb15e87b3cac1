"""Priorities, sum tree and importance weights: one bad number poisons nothing, and no item is drawn too often or never."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.replay import MinSize, Prioritized, Table, TableClient, importance_weights
from rollstream.replay.log import UpdateEntry
from rollstream.replay.packed import PackedArrays, pack, unpack
from rollstream.replay.sum_tree import SumTree
from rollstream.replay.table_state import load_state, table_state
from rollstream.seeding import child_generator
from rollstream.store import Address, Store


def update(table: Table, item_keys: np.ndarray, priorities: list[float]) -> None:
    table.update(UpdateEntry(keys=item_keys, priority=np.array(priorities, np.float32)))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0])
def test_o01_a_bad_priority_is_refused_and_counted_and_sampling_goes_on(table: Any, insert: Any, bad: float) -> None:
    index = table(sampler=Prioritized())
    item_keys = insert(index, [1.0] * 10)
    update(index, item_keys[:3], [2.0, bad, 3.0])
    assert index.counters["priorities_refused"] == 1
    assert index.items.priority[:3].tolist() == [2.0, 1.0, 3.0]
    assert len(index.sample(4).keys) == 4
    insert(index, [bad, 1.0])
    assert index.counters["priorities_refused"] == 2
    assert index.items.priority[10] == 3.0, "takes the highest so far instead"


def test_o01_a_batch_of_nan_is_an_error_in_the_log_and_nothing_else(
    store: Store, address: Address, caplog: pytest.LogCaptureFixture
) -> None:
    client = TableClient(store, address, table_id="run-abc123.replay", clock=SystemClock())
    with caplog.at_level(logging.WARNING):
        result = client.update_priorities(np.array([7, 8], np.uint64), np.full(2, np.nan), learner_version=12)
    assert (result.sent, result.refused) == (0, 2)
    assert client.priorities_refused == 2
    assert "table run-abc123.replay: refused 2 of 2 priorities (first: key 7, value nan; learner version 12)" in caplog.text
    assert caplog.records[0].levelname == "ERROR"
    client.close()


def test_o02_errors_of_exactly_zero_leave_weights_finite(table: Any, insert: Any) -> None:
    index = table(sampler=Prioritized(exponent=1.0))
    insert(index, [0.0] * 8)
    sampled = index.sample(64)
    weights = importance_weights(sampled.probability, sampled.table_items, beta=1.0)
    assert weights.tolist() == [1.0] * 64
    insert(index, [2.0, 2.0])
    sampled = index.sample(64)
    assert sampled.table_items == 2, "items of priority 0 are never drawn and not part of N"
    assert importance_weights(sampled.probability, sampled.table_items, beta=1.0).tolist() == [1.0] * 64


def test_o03_an_unwritten_slot_is_never_drawn(table: Any, insert: Any) -> None:
    index = table(sampler=Prioritized(), max_items=1000)
    written = set(insert(index, [0.5, 1.0, 2.0]).tolist())
    for _ in range(200):
        sampled = index.sample(64)
        assert set(sampled.keys.tolist()) <= written
        assert np.isfinite(importance_weights(sampled.probability, sampled.table_items, beta=1.0)).all()


def test_o04_newest_item_is_sampled_as_often_as_its_priority_says(table: Any, insert: Any) -> None:
    index = table(sampler=Prioritized(exponent=1.0))
    newest = insert(index, [1.0, 99.0])[1]
    sampled = index.sample(10_000)
    assert abs((sampled.keys == newest).mean() - 0.99) < 0.01


def test_o04_all_items_are_drawn_by_their_share_right_after_wrap_around(table: Any, insert: Any) -> None:
    index = table(sampler=Prioritized(exponent=1.0), max_items=7)
    insert(index, [5.0] * 7)
    item_keys = np.concatenate([insert(index, [1.0, 2.0, 3.0]), insert(index, [4.0, 5.0, 6.0, 7.0])])
    sampled = index.sample(28_000)
    counts = np.array([(sampled.keys == key).sum() for key in item_keys])
    expected = 1000.0 * np.arange(1, 8)
    assert ((counts - expected) ** 2 / expected).sum() < 24.3, "chi-square with 6 degrees of freedom, p = 0.0005"


def test_o05_mass_at_exact_edges_never_finds_a_weight_of_zero() -> None:
    weights = np.array([1e-12, 1e6, 0.0, 1e-12])
    tree = SumTree(4)
    tree.set(np.arange(4), weights)
    edges = np.concatenate([[0.0], np.cumsum(weights), [np.nextafter(tree.total, 0.0)], np.nextafter(np.cumsum(weights), 0.0)])
    found = tree.find(np.minimum(edges, tree.total))
    assert (weights[found] > 0.0).all()


def test_o05_the_total_does_not_drift() -> None:
    generator = child_generator(5, "drift")
    tree = SumTree(512)
    weights = np.zeros(512)
    for _ in range(2_000):
        slots = generator.choice(512, 64, replace=False)
        weights[slots] = 10.0 ** generator.uniform(-6, 6, 64)
        tree.set(slots, weights[slots])
    assert tree.total == pytest.approx(weights.sum(), rel=1e-12)


def test_o07_a_priority_is_stored_raw_and_transformed_once(table: Any, insert: Any) -> None:
    index = table(sampler=Prioritized(exponent=0.5))
    item_keys = insert(index, [4.0, 1.0])
    for _ in range(3):
        sampled = index.sample(100)
        assert set(sampled.priority[sampled.keys == item_keys[0]].tolist()) == {4.0}
        assert sampled.probability[sampled.keys == item_keys[0]] == pytest.approx(2.0 / 3.0)
        update(index, item_keys, [4.0, 1.0])


def test_o08_items_whose_priorities_were_lost_start_at_the_highest_so_far(table: Any, insert: Any) -> None:
    index = table(sampler=Prioritized())
    insert(index, [1.0, 8.0, 2.0])
    state = table_state(index)
    restored = table(sampler=Prioritized())
    arrays = {name: array for name, array in state.arrays.items() if name != "priority"}
    load_state(restored, PackedArrays(facts=state.facts, arrays=arrays))
    assert restored.counters["priorities_rebuilt"] == 3
    assert set(restored.sample(30).priority.tolist()) == {8.0}


@pytest.mark.parametrize("fill", ["empty", "never sampled", "updated"])
def test_o09_a_snapshot_in_any_state_restores_byte_for_byte(table: Any, insert: Any, fill: str) -> None:
    index = table(sampler=Prioritized())
    if fill != "empty":
        item_keys = insert(index, [1.0, 2.0, 3.0])
    if fill == "updated":
        index.sample(5)
        update(index, item_keys, [5.0, 6.0, 7.0])
    state = table_state(index)
    buffer = pack(state.facts, state.arrays)
    restored = table(sampler=Prioritized())
    load_state(restored, unpack(buffer, what="snapshot"))
    again = table_state(restored)
    assert pack(again.facts, again.arrays) == buffer


def test_o10_a_batch_larger_than_the_table_waits_for_min_items_or_repeats_items(table: Any, insert: Any) -> None:
    index = table(limiter=MinSize(min_items=256))
    insert(index, [1.0] * 64)
    assert not index.can_sample(256)
    assert index.sample_waits_for(256) == "waiting for min_items 256, have 64: writers must insert"
    small = table(limiter=MinSize(min_items=1))
    insert(small, [1.0] * 64)
    assert len(small.sample(256).keys) == 256


def test_o11_both_normalizations_are_exact() -> None:
    probability = np.array([0.1, 0.2, 0.7])
    raw = (10 * probability) ** -0.5
    assert importance_weights(probability, 10, beta=0.5, normalize="batch") == pytest.approx(raw / raw[0], rel=1e-6)
    smallest_of_table = 0.05
    expected = raw / (10 * smallest_of_table) ** -0.5
    weights = importance_weights(probability, 10, beta=0.5, normalize="table", min_probability=smallest_of_table)
    assert weights == pytest.approx(expected, rel=1e-6)
