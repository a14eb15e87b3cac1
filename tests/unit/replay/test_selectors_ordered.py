"""Fifo, Lifo, MinHeap and MaxHeap: order, ties, uses left, gaps, and members that come back."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.replay.selector_spec import Fifo, Lifo, MaxHeap, MinHeap, Sampler
from rollstream.replay.selectors import ArrivalSelector, HeapSelector, Selector, make_selector
from rollstream.seeding import child_generator

GENERATOR = child_generator(1, "ordered")


class Filling:
    """Numbers items as a table would."""

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self.number = 0

    def insert(self, slots: list[int], priorities: list[float] | None = None) -> None:
        numbers = np.arange(self.number, self.number + len(slots))
        self.number += len(slots)
        weights = np.array(priorities or [1.0] * len(slots))
        self.selector.insert(np.array(slots), weights, numbers=numbers, versions=np.zeros(len(slots), np.uint32))

    def first(self, count: int) -> list[int]:
        return self.selector.select_distinct(count, generator=GENERATOR).tolist()


def test_fifo_names_the_oldest_and_lifo_the_newest() -> None:
    for newest_first, expected in ((False, [2, 0, 3, 1]), (True, [1, 3, 0, 2])):
        filling = Filling(ArrivalSelector(4, newest_first=newest_first))
        filling.insert([2, 0, 3, 1])
        assert filling.first(4) == expected
        filling.selector.update(np.array([0]), np.array([9.0]))
        assert filling.first(4) == expected


def test_slots_that_are_used_again_go_to_their_new_place() -> None:
    filling = Filling(ArrivalSelector(4, newest_first=False))
    filling.insert([2, 0, 3, 1])
    filling.selector.remove(np.array([2, 3]))
    filling.insert([3, 2])
    assert filling.first(4) == [0, 1, 3, 2]


@pytest.mark.parametrize(("rule", "expected"), [(Fifo(), [0, 9]), (Lifo(), [9, 0])])
def test_gaps_in_the_ring_are_closed_for_ever(rule: Sampler, expected: list[int]) -> None:
    filling = Filling(make_selector(rule, capacity=10))
    filling.insert([0])
    for turn in range(500):
        filling.insert([1 + turn % 7, 8])
        filling.selector.remove(np.array([8, 1 + turn % 7]))
    filling.insert([9])
    assert filling.first(2) == expected
    assert filling.selector.sampleable == 2


def test_a_search_over_many_gaps_closes_them() -> None:
    selector = ArrivalSelector(20_000, newest_first=False)
    filling = Filling(selector)
    filling.insert(list(range(20_000)))
    selector.remove(np.arange(1, 19_000))
    assert filling.first(3) == [0, 19_000, 19_001]
    assert selector._tail - selector._head == selector.sampleable == 1_001


def test_members_that_come_back_stand_where_they_stood() -> None:
    for newest_first, expected in ((False, [3, 2, 1, 0]), (True, [0, 1, 2, 3])):
        selector = ArrivalSelector(4, newest_first=newest_first)
        filling = Filling(selector)
        filling.insert([3, 2, 1, 0])
        back = filling.selector.select_distinct(2, generator=GENERATOR)
        selector.remove(back)
        selector.insert(back, np.ones(2), numbers=3 - back, versions=np.zeros(2, np.uint32))
        assert filling.first(4) == expected


@pytest.mark.parametrize("rule", [Fifo(), Lifo(), MinHeap(), MaxHeap()], ids=lambda rule: rule.kind)
def test_each_item_is_drawn_as_often_as_it_may_be_used(rule: Sampler) -> None:
    filling = Filling(make_selector(rule, capacity=4))
    filling.insert([0, 1, 2], [1.0, 2.0, 3.0])
    left = np.array([2, 1, 2, 0], np.int32)
    forward = rule.kind in ("fifo", "min_heap")
    drawn = filling.selector.select(4, generator=GENERATOR, uses_left=left)
    assert drawn.slots.tolist() == ([0, 0, 1, 2] if forward else [2, 2, 1, 0])
    assert drawn.probability.tolist() == [1.0] * 4
    more_than_there_are = filling.selector.select(9, generator=GENERATOR, uses_left=left)
    assert len(more_than_there_are.slots) == 5
    for_ever = filling.selector.select(3, generator=GENERATOR, uses_left=None)
    assert for_ever.slots.tolist() == ([0] * 3 if forward else [2] * 3)


def test_of_equal_priorities_the_least_recently_written_goes_first() -> None:
    for highest_first in (False, True):
        filling = Filling(HeapSelector(6, highest_first=highest_first))
        filling.insert([4, 1, 3, 0], [1.0, 1.0, 1.0, 1.0])
        assert filling.first(4) == [4, 1, 3, 0]
        filling.selector.update(np.array([4, 3]), np.array([1.0, 1.0]))
        assert filling.first(4) == [1, 0, 4, 3]
        filling.selector.remove(np.array([0]))
        filling.insert([0], [1.0])
        assert filling.first(4) == [1, 4, 3, 0]


def test_heaps_order_priorities_from_zero_to_the_largest() -> None:
    priorities = [1e12, 0.0, 1e-12, 1.0, -0.0, 3.4e38]
    low = Filling(HeapSelector(6, highest_first=False))
    high = Filling(HeapSelector(6, highest_first=True))
    for filling in (low, high):
        filling.insert(list(range(6)), priorities)
    assert low.first(6) == [1, 4, 2, 3, 0, 5]
    assert high.first(6) == [5, 0, 3, 2, 1, 4]


def test_heaps_number_their_writes_anew_before_the_numbers_run_out() -> None:
    filling = Filling(HeapSelector(6, highest_first=False, last_write=10))
    filling.insert([5, 4, 3, 2, 1, 0])
    for turn in range(40):
        filling.selector.update(np.array([turn % 6]), np.array([1.0]))
    assert filling.first(6) == [4, 5, 0, 1, 2, 3]


def test_no_member_has_no_probability() -> None:
    for selector in (ArrivalSelector(3, newest_first=False), HeapSelector(3, highest_first=True)):
        assert selector.probability(np.array([0, 1])).tolist() == [0.0, 0.0]
