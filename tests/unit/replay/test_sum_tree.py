"""Sum tree: sums, descents at exact edges, and no drift."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.replay.sum_tree import SumTree


@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 64, 100])
def test_total_is_the_sum_of_all_weights(capacity: int) -> None:
    weights = np.arange(capacity, dtype=np.float64) + 1.0
    tree = SumTree(capacity)
    tree.set(np.arange(capacity), weights)
    assert tree.total == weights.sum()
    assert tree.get(np.arange(capacity)).tolist() == weights.tolist()


def test_each_mass_finds_the_slot_whose_range_holds_it() -> None:
    tree = SumTree(4)
    tree.set(np.arange(4), np.array([1.0, 0.0, 2.0, 3.0]))
    masses = np.array([0.0, 0.999, 1.0, 2.999, 3.0, 5.999])
    assert tree.find(masses).tolist() == [0, 0, 2, 2, 3, 3]


def test_of_a_repeated_slot_the_last_weight_counts() -> None:
    tree = SumTree(8)
    tree.set(np.array([3, 3, 1, 3]), np.array([9.0, 8.0, 1.0, 2.0]))
    assert tree.get(np.array([1, 3])).tolist() == [1.0, 2.0]
    assert tree.total == 3.0


def test_a_slot_of_weight_zero_is_never_found_even_at_the_end_of_the_mass() -> None:
    tree = SumTree(8)
    tree.set(np.arange(8), np.array([0.0, 0.1, 0.0, 0.2, 0.3, 0.0, 0.0, 0.0]))
    edge = np.array([0.0, np.nextafter(tree.total, 0.0), tree.total, tree.total * (1 + 1e-12)])
    assert set(tree.find(edge).tolist()) <= {1, 3, 4}


def test_nothing_happens_for_no_slots() -> None:
    tree = SumTree(4)
    tree.set(np.zeros(0, np.int64), np.zeros(0))
    assert tree.total == 0.0
