"""Priorities, sum tree and importance weights: one bad number poisons nothing, and no item is drawn too often or never."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from rollstream.replay import MinSize, Prioritized, TableGroup, importance_weights
from rollstream.replay.group_state import capture, load_snapshot
from rollstream.replay.log import UpdateEntry
from rollstream.replay.packed import PackedArrays, pack, unpack
from rollstream.replay.sum_tree import SumTree
from rollstream.seeding import child_generator


def update(group: TableGroup, item_keys: np.ndarray, priorities: list[float]) -> None:
    group.update(UpdateEntry(keys=item_keys, priority=np.array(priorities, np.float32)))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0])
def test_o01_a_bad_priority_is_refused_and_counted_and_sampling_goes_on(table: Any, insert: Any, bad: float) -> None:
    group = table(sampler=Prioritized())
    index = group.primary
    item_keys = insert(group, [1.0] * 10)
    update(group, item_keys[:3], [2.0, bad, 3.0])
    assert index.counters["priorities_refused"] == 1
    assert index.items.priority[:3].tolist() == [2.0, 1.0, 3.0]
    assert len(index.sample(4).keys) == 4
    insert(group, [bad, 1.0])
    expected = 1 if np.isnan(bad) else 2  # in the log NaN stands for "the highest so far"; writers let nobody give it
    assert index.counters["priorities_refused"] == expected
    assert index.items.priority[10] == 3.0, "takes the highest so far instead"


def test_o01_a_batch_of_nan_is_an_error_in_the_log_and_nothing_else(
    cell: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = cell.table(sampler=Prioritized())
    item_keys = made.insert(2)
    with caplog.at_level(logging.WARNING):
        result = made.client.update_priorities(item_keys, np.full(2, np.nan), learner_version=12)
    assert (result.sent, result.refused) == (0, 2)
    assert made.client.priorities_refused == 2
    first = f"(first: key {item_keys[0]}, value nan; learner version 12)"
    assert f"table {made.id}: refused 2 of 2 priorities {first}" in caplog.text
    assert caplog.records[0].levelname == "ERROR"
    eventually(lambda: made.client.info()["priorities_refused"] == 2)
    assert set(made.client.sample(batch_items=8).priority.tolist()) == {1.0}


def test_o02_errors_of_exactly_zero_leave_weights_finite(table: Any, insert: Any) -> None:
    group = table(sampler=Prioritized(exponent=1.0))
    index = group.primary
    insert(group, [0.0] * 8)
    sampled = index.sample(64)
    weights = importance_weights(sampled.probability, sampled.table_items, beta=1.0)
    assert weights.tolist() == [1.0] * 64
    insert(group, [2.0, 2.0])
    sampled = index.sample(64)
    assert sampled.table_items == 2, "items of priority 0 are never drawn and not part of N"
    assert importance_weights(sampled.probability, sampled.table_items, beta=1.0).tolist() == [1.0] * 64


def test_o03_an_unwritten_slot_is_never_drawn(table: Any, insert: Any) -> None:
    group = table(sampler=Prioritized(), max_items=1000)
    index = group.primary
    written = set(insert(group, [0.5, 1.0, 2.0]).tolist())
    for _ in range(200):
        sampled = index.sample(64)
        assert set(sampled.keys.tolist()) <= written
        assert np.isfinite(importance_weights(sampled.probability, sampled.table_items, beta=1.0)).all()


def test_o04_newest_item_is_sampled_as_often_as_its_priority_says(table: Any, insert: Any) -> None:
    group = table(sampler=Prioritized(exponent=1.0))
    index = group.primary
    newest = insert(group, [1.0, 99.0])[1]
    sampled = index.sample(10_000)
    assert abs((sampled.keys == newest).mean() - 0.99) < 0.01


def test_o04_all_items_are_drawn_by_their_share_right_after_wrap_around(table: Any, insert: Any) -> None:
    group = table(sampler=Prioritized(exponent=1.0), max_items=7)
    index = group.primary
    insert(group, [5.0] * 7)
    item_keys = np.concatenate([insert(group, [1.0, 2.0, 3.0]), insert(group, [4.0, 5.0, 6.0, 7.0])])
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
    group = table(sampler=Prioritized(exponent=0.5))
    index = group.primary
    item_keys = insert(group, [4.0, 1.0])
    for _ in range(3):
        sampled = index.sample(100)
        assert set(sampled.priority[sampled.keys == item_keys[0]].tolist()) == {4.0}
        assert sampled.probability[sampled.keys == item_keys[0]] == pytest.approx(2.0 / 3.0)
        update(group, item_keys, [4.0, 1.0])


def test_o08_items_whose_priorities_were_lost_start_at_the_highest_so_far(table: Any, insert: Any) -> None:
    group = table(sampler=Prioritized())
    insert(group, [1.0, 8.0, 2.0])
    state = capture(group).packed()
    restored = table(sampler=Prioritized())
    arrays = {name: array for name, array in state.arrays.items() if name != "0.priority"}
    load_snapshot(restored, PackedArrays(facts=state.facts, arrays=arrays))
    assert restored.primary.counters["priorities_rebuilt"] == 3
    assert set(restored.primary.sample(30).priority.tolist()) == {8.0}


@pytest.mark.parametrize("fill", ["empty", "never sampled", "updated"])
def test_o09_a_snapshot_in_any_state_restores_byte_for_byte(table: Any, insert: Any, fill: str) -> None:
    group = table(sampler=Prioritized())
    if fill != "empty":
        item_keys = insert(group, [1.0, 2.0, 3.0])
    if fill == "updated":
        group.primary.sample(5)
        update(group, item_keys, [5.0, 6.0, 7.0])
    state = capture(group).packed()
    buffer = pack(state.facts, state.arrays)
    restored = table(sampler=Prioritized())
    load_snapshot(restored, unpack(buffer, what="snapshot"))
    again = capture(restored).packed()
    assert pack(again.facts, again.arrays) == buffer


def test_o10_a_batch_larger_than_the_table_waits_for_min_items_or_repeats_items(table: Any, insert: Any) -> None:
    group = table(limiter=MinSize(min_items=256))
    index = group.primary
    insert(group, [1.0] * 64)
    assert not index.can_sample(256)
    assert index.sample_waits_for(256) == "waiting for min_items 256, have 64: writers must insert"
    small = table(limiter=MinSize(min_items=1))
    insert(small, [1.0] * 64)
    assert len(small.primary.sample(256).keys) == 256


def test_o11_both_normalizations_are_exact() -> None:
    probability = np.array([0.1, 0.2, 0.7])
    raw = (10 * probability) ** -0.5
    assert importance_weights(probability, 10, beta=0.5, normalize="batch") == pytest.approx(raw / raw[0], rel=1e-6)
    smallest_of_table = 0.05
    expected = raw / (10 * smallest_of_table) ** -0.5
    weights = importance_weights(probability, 10, beta=0.5, normalize="table", min_probability=smallest_of_table)
    assert weights == pytest.approx(expected, rel=1e-6)
