"""Selectors: distribution, order, removal, and the awkward priorities."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.replay import Fifo, Prioritized, Uniform
from rollstream.replay.selectors import FifoSelector, PrioritizedSelector, Selector, UniformSelector, make_selector
from rollstream.seeding import child_generator

GENERATOR = child_generator(1, "selectors")


def draw(selector: Selector, count: int) -> list[int]:
    return selector.select(count, generator=child_generator(7, "draw"), uses_left=None).slots.tolist()


def fill(selector: Selector, slots: list[int], priorities: list[float] | None = None) -> None:
    selector.insert(np.array(slots), np.array(priorities or [1.0] * len(slots)))


@pytest.mark.parametrize("rule", [Uniform(), Fifo(), Prioritized(exponent=1.0)])
def test_removed_slots_are_never_drawn_again(rule: Uniform | Fifo | Prioritized) -> None:
    selector = make_selector(rule, capacity=32)
    fill(selector, list(range(32)))
    selector.remove(np.array([0, 5, 31, 30]))
    selector.remove(np.arange(10, 20))
    assert selector.sampleable == 18
    left = set(range(32)) - {0, 5, 31, 30} - set(range(10, 20))
    assert set(draw(selector, 500)) <= left
    assert set(selector.select_distinct(18, generator=GENERATOR).tolist()) == left


@pytest.mark.parametrize("rule", [Uniform(), Fifo(), Prioritized(exponent=1.0)])
def test_distinct_draws_are_distinct(rule: Uniform | Fifo | Prioritized) -> None:
    selector = make_selector(rule, capacity=100)
    fill(selector, list(range(100)))
    for count in (1, 7, 60, 100):
        assert len(set(selector.select_distinct(count, generator=GENERATOR).tolist())) == count


def test_the_same_seed_draws_the_same_slots() -> None:
    selector = UniformSelector(100)
    fill(selector, list(range(100)))
    assert draw(selector, 50) == draw(selector, 50)


def test_uniform_draws_every_slot_equally_often() -> None:
    selector = UniformSelector(10)
    fill(selector, list(range(10)))
    counts = np.bincount(draw(selector, 20_000), minlength=10)
    assert abs(counts - 2000).max() < 200


def test_fifo_names_the_oldest_and_reuses_slots_in_order() -> None:
    selector = FifoSelector(4)
    fill(selector, [2, 0, 3, 1])
    assert selector.select_distinct(2, generator=GENERATOR).tolist() == [2, 0]
    selector.remove(np.array([2, 3]))
    fill(selector, [3, 2])
    assert selector.select_distinct(4, generator=GENERATOR).tolist() == [0, 1, 3, 2]


def test_fifo_closes_gaps_when_its_ring_is_full() -> None:
    selector = FifoSelector(4)
    fill(selector, [0])
    for turn in range(50):
        fill(selector, [1 + turn % 2])
        selector.remove(np.array([1 + turn % 2]))
    fill(selector, [3])
    assert selector.select_distinct(2, generator=GENERATOR).tolist() == [0, 3]


def test_fifo_draws_each_item_as_often_as_it_may_be_used() -> None:
    selector = FifoSelector(4)
    fill(selector, [0, 1, 2])
    selection = selector.select(5, generator=GENERATOR, uses_left=np.array([2, 2, 2, 0]))
    assert selection.slots.tolist() == [0, 0, 1, 1, 2]


def test_a_prioritized_draw_reports_its_probability() -> None:
    selector = PrioritizedSelector(3, exponent=0.5)
    fill(selector, [0, 1, 2], [4.0, 1.0, 1.0])
    selection = selector.select(100, generator=GENERATOR, uses_left=None)
    assert selection.probability.tolist() == [0.5 if slot == 0 else 0.25 for slot in selection.slots]


def test_priority_zero_is_never_drawn_and_does_not_count() -> None:
    selector = PrioritizedSelector(4, exponent=0.0)
    fill(selector, [0, 1, 2, 3], [0.0, 5.0, 0.0, 1.0])
    assert set(draw(selector, 1000)) == {1, 3}
    assert selector.sampleable == 2
    selector.update(np.array([1, 3]), np.array([0.0, 0.0]))
    assert selector.sampleable == 4
    assert set(draw(selector, 1000)) == {0, 1, 2, 3}
    selector.update(np.array([2]), np.array([3.0]))
    selector.remove(np.array([2]))
    assert selector.sampleable == 3
