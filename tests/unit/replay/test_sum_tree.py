"""Sum tree: sums, descents at exact edges, the least weight, and no drift."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from rollstream.replay import sum_tree
from rollstream.replay.sum_tree import SumTree

SIZES = [1, 2, 3, 5, 8, 9, 64, 100, 4_096, 4_097, 40_000, 300_000]
"""From one leaf to two levels between leaves and top, on both sides of each border."""


@pytest.mark.parametrize("capacity", SIZES)
def test_total_is_the_sum_of_all_weights(capacity: int) -> None:
    weights = np.arange(capacity, dtype=np.float64) + 1.0
    tree = SumTree(capacity)
    tree.set(np.arange(capacity), weights)
    assert tree.total == weights.sum()
    assert tree.least == 1.0
    assert tree.get(np.arange(capacity)).tolist() == weights.tolist()


@pytest.mark.parametrize("capacity", SIZES)
def test_each_mass_finds_the_slot_whose_range_holds_it(capacity: int) -> None:
    tree = SumTree(capacity)
    weights = np.arange(capacity) % 4 + 1.0 * (np.arange(capacity) == 0)  # whole numbers: sums are exact
    tree.set(np.arange(capacity), weights)
    behind = np.cumsum(weights)
    positive = np.flatnonzero(weights)
    assert tree.find(behind[positive] - weights[positive]).tolist() == positive.tolist()
    assert tree.find(behind[positive] - 0.5).tolist() == positive.tolist()


@pytest.mark.parametrize("capacity", SIZES)
def test_the_first_and_the_last_slot_are_found_when_they_are_the_only_ones(capacity: int) -> None:
    for slot in (0, capacity - 1):
        tree = SumTree(capacity)
        tree.set(np.array([slot]), np.array([1e-12]))
        mass = np.array([0.0, 0.5e-12, 1e-12, 1.0])
        assert tree.find(mass).tolist() == [slot] * 4


def test_of_a_repeated_slot_the_last_weight_counts() -> None:
    tree = SumTree(8)
    tree.set(np.array([3, 3, 1, 3]), np.array([9.0, 8.0, 1.0, 2.0]))
    assert tree.get(np.array([1, 3])).tolist() == [1.0, 2.0]
    assert tree.total == 3.0


@pytest.mark.parametrize("capacity", [8, 64, 5_000, 300_000])
def test_a_slot_of_weight_zero_is_never_found_even_at_the_end_of_the_mass(capacity: int) -> None:
    tree = SumTree(capacity)
    slots = np.array([1, 3, 4, capacity // 2, capacity - 3])
    tree.set(np.arange(capacity), np.zeros(capacity))
    tree.set(slots, np.array([0.1, 0.2, 0.3, 0.7, 0.1]))
    edges = np.cumsum(tree.get(np.unique(slots)))
    mass = np.concatenate(
        [edges, np.nextafter(edges, 0.0), np.nextafter(edges, 9.0), [0.0, tree.total, tree.total * (1 + 1e-12), 99.0]]
    )
    assert set(tree.find(mass).tolist()) <= set(slots.tolist())


def test_masses_beside_all_weights_by_rounding_are_placed_on_a_weight() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        tree = SumTree(40_000)
        slots = generator.integers(0, 40_000, 300)
        tree.set(slots, np.exp(generator.normal(size=300) * 10.0))
        edges = np.cumsum(tree.get(np.arange(40_000)))
        mass = np.concatenate([edges[slots], np.nextafter(edges[slots], 0.0), np.nextafter(edges[slots], np.inf)])
        assert (tree.get(tree.find(mass)) > 0.0).all()


@pytest.mark.parametrize("spread", [12, 48])
def test_weights_of_any_size_keep_their_share(spread: int) -> None:
    tree = SumTree(50_000)
    weights = np.logspace(-spread, spread, 50_000)
    tree.set(np.arange(50_000), weights)
    assert tree.total == pytest.approx(weights.sum(), rel=1e-12)
    assert tree.least == weights[0]
    heavy = slice(40_000, None)
    tree.set(np.arange(40_000, 50_000), np.zeros(10_000))
    assert tree.total == pytest.approx(weights[:40_000].sum(), rel=1e-12)  # nothing is left of the heavy ones
    assert tree.get(np.arange(50_000))[heavy].sum() == 0.0


def test_ten_million_updates_leave_no_drift() -> None:
    generator = np.random.default_rng(1)
    capacity, batch = 1 << 14, 10_000
    tree, weights = SumTree(capacity), np.zeros(capacity)
    for _ in range(1_000):
        slots = generator.integers(0, capacity, batch)
        values = generator.random(batch) * 1e3
        tree.set(slots, values)
        weights[slots] = values
        tree.set(slots[:50], values[:50] * 1e9)  # heavy for a moment
        assert tree.total > 0.0
        tree.set(slots[:50], weights[slots[:50]])
    assert tree.total == pytest.approx(weights.sum(), rel=1e-12)
    fresh = SumTree(capacity)
    fresh.set(np.arange(capacity), weights)
    assert tree.total == fresh.total


def test_many_writes_without_a_question_are_not_all_remembered() -> None:
    tree = SumTree(64)
    for _ in range(50):
        tree.set(np.arange(64).repeat(100), np.ones(6_400))
    assert tree._sums._changes <= 100_000
    assert tree.total == 64.0


def test_scaled_weights_keep_their_ratios_down_to_the_floor() -> None:
    tree = SumTree(5_000)
    tree.set(np.array([0, 1, 4_999]), np.array([1.0, 4.0, 1e-9]))
    assert tree.least == 1e-9
    tree.scale(0.25, floor=1e-6)
    assert tree.get(np.array([0, 1, 2, 4_999])).tolist() == [0.25, 1.0, 0.0, 1e-6]
    assert tree.total == pytest.approx(1.25 + 1e-6)
    assert tree.least == 1e-6


def test_without_weights_there_is_no_least() -> None:
    tree = SumTree(5_000)
    assert tree.least == np.inf
    tree.set(np.array([7]), np.array([2.0]))
    assert tree.least == 2.0
    tree.set(np.array([7]), np.array([0.0]))
    assert tree.least == np.inf
    assert SumTree(3).least == np.inf


def test_nothing_happens_for_no_slots() -> None:
    tree = SumTree(4)
    tree.set(np.zeros(0, np.int64), np.zeros(0))
    assert tree.total == 0.0


def test_the_example_runs() -> None:
    outcome = doctest.testmod(sum_tree)
    assert outcome.attempted > 2
    assert not outcome.failed
