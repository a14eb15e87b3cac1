"""Prioritized, stratified, recency and lag: edges of the weights, strata, moving references, masses of shards."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.replay.selector_spec import Prioritized, Recency
from rollstream.replay.selectors import (
    LagWeightedSelector,
    PrioritizedSelector,
    RecencySelector,
    Selector,
    UniformSelector,
    make_selector,
)
from rollstream.seeding import child_generator

GENERATOR = child_generator(1, "weighted")


def fill(
    selector: Selector, priorities: list[float], *, numbers: np.ndarray | None = None, versions: np.ndarray | None = None
) -> None:
    count = len(priorities)
    selector.insert(
        np.arange(count),
        np.array(priorities),
        numbers=np.arange(count) if numbers is None else numbers,
        versions=np.zeros(count, np.uint32) if versions is None else versions,
    )


def draw(selector: Selector, count: int) -> list[int]:
    return selector.select(count, generator=child_generator(7, "draw"), uses_left=None).slots.tolist()


def test_a_prioritized_draw_reports_its_probability() -> None:
    selector = PrioritizedSelector(3, exponent=0.5)
    fill(selector, [4.0, 1.0, 1.0])
    selection = selector.select(100, generator=GENERATOR, uses_left=None)
    assert selection.probability.tolist() == [0.5 if slot == 0 else 0.25 for slot in selection.slots]
    assert selector.mass == 4.0


def test_priority_zero_is_never_drawn_and_does_not_count() -> None:
    selector = PrioritizedSelector(4, exponent=0.0)
    fill(selector, [0.0, 5.0, 0.0, 1.0])
    assert set(draw(selector, 1000)) == {1, 3}
    assert selector.sampleable == 2
    selector.update(np.array([1, 3]), np.array([0.0, 0.0]))
    assert selector.sampleable == 4
    assert set(draw(selector, 1000)) == {0, 1, 2, 3}
    assert selector.min_probability == 0.25
    selector.update(np.array([2]), np.array([3.0]))
    selector.remove(np.array([2]))
    assert selector.sampleable == 3


def test_items_of_priority_zero_leave_after_all_others() -> None:
    selector = PrioritizedSelector(6, exponent=1.0)
    fill(selector, [0.0, 5.0, 0.0, 1.0, 0.0, 0.0])
    leaving = selector.select_distinct(5, generator=GENERATOR).tolist()
    assert set(leaving[:2]) == {1, 3}
    assert set(leaving[2:]) < {0, 2, 4, 5}
    assert len(set(leaving)) == 5


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 4.0])
def test_priorities_far_apart_are_drawn_and_removed_in_their_order(exponent: float) -> None:
    selector = PrioritizedSelector(50, exponent=exponent)
    priorities = np.logspace(-12, 12, 50)
    fill(selector, priorities.tolist())
    weights = priorities**exponent
    assert selector.probability(np.arange(50)) == pytest.approx(weights / weights.sum(), rel=1e-12)
    assert selector.min_probability == pytest.approx(weights[0] / weights.sum(), rel=1e-12)
    before = selector.probability(np.arange(50)).tolist()
    leaving = selector.select_distinct(50, generator=GENERATOR).tolist()
    assert sorted(leaving) == list(range(50))
    if exponent == 4.0:
        assert np.mean(np.diff(leaving) < 0) > 0.8
    assert selector.probability(np.arange(50)).tolist() == before


def test_a_positive_priority_never_gets_weight_zero() -> None:
    selector = PrioritizedSelector(3, exponent=4.0)
    fill(selector, [1e-200, 0.0, 1e-200])
    assert selector.sampleable == 2
    assert set(draw(selector, 100)) == {0, 2}


def test_one_of_each_stratum_is_drawn() -> None:
    selector = make_selector(Prioritized(exponent=1.0, stratified=True), capacity=64)
    fill(selector, [1.0] * 64)
    for batch in range(20):
        drawn = selector.select(32, generator=child_generator(batch, "strata"), uses_left=None).slots
        assert sorted((drawn // 2).tolist()) == list(range(32))
        assert drawn.tolist() != sorted(drawn.tolist())  # in random order, so that half a batch is no half of the table


def test_a_sparse_table_is_drawn_from_evenly() -> None:
    selector = UniformSelector(10_000)
    fill(selector, [1.0] * 10_000)
    selector.remove(np.arange(0, 9_000))  # a tenth is left: places are tried
    counts = np.bincount(draw(selector, 20_000), minlength=10_000)
    assert counts[:9_000].sum() == 0
    assert counts[9_000:].min() > 2
    selector.remove(np.arange(9_050, 10_000))  # one in two hundred: members are listed
    counts = np.bincount(draw(selector, 20_000), minlength=9_050)
    assert counts[:9_000].sum() == 0
    assert abs(counts[9_000:] - 400).max() < 100


def test_weights_by_age_are_exact_however_far_the_reference_has_moved() -> None:
    selector = RecencySelector(8, half_life=2.0)
    for first in range(0, 20_000, 4):  # over many moves of the reference
        slots = np.arange(4) + first % 8
        if first >= 8:
            selector.remove(slots)
        selector.insert(slots, np.ones(4), numbers=np.arange(first, first + 4), versions=np.zeros(4, np.uint32))
    ages = np.array([7, 6, 5, 4, 3, 2, 1, 0])
    weights = 0.5 ** (ages / 2.0)
    assert selector.probability(np.arange(8)) == pytest.approx(weights / weights.sum(), rel=1e-12)
    assert selector.mass == pytest.approx(weights.sum(), rel=1e-12)


def test_an_item_that_is_older_than_any_weight_can_tell_is_not_lost() -> None:
    selector = RecencySelector(4, half_life=1.0)
    selector.insert(np.array([0]), np.ones(1), numbers=np.array([0]), versions=np.zeros(1, np.uint32))
    selector.insert(np.array([1]), np.ones(1), numbers=np.array([1_000_000]), versions=np.zeros(1, np.uint32))
    assert selector.sampleable == 2
    assert set(draw(selector, 100)) == {1}
    selector.remove(np.array([1]))
    assert set(draw(selector, 100)) == {0}


def test_ages_in_items_count_for_the_whole_table() -> None:
    selector = make_selector(Recency(half_life=100.0), capacity=4, shards=4)
    fill(selector, [1.0, 1.0], numbers=np.array([0, 25]))  # 25 items of this shard are 100 of the table
    assert selector.probability(np.array([0, 1])) == pytest.approx([1 / 3, 2 / 3])
    by_version = make_selector(Recency(half_life=100.0, unit="versions"), capacity=4, shards=4)
    fill(by_version, [1.0, 1.0], versions=np.array([0, 100], np.uint32))
    assert by_version.probability(np.array([0, 1])) == pytest.approx([1 / 3, 2 / 3])


def test_updated_priorities_keep_their_lag() -> None:
    selector = LagWeightedSelector(4, exponent=1.0, half_life_versions=3.0)
    fill(selector, [8.0, 1.0], versions=np.array([1, 7], np.uint32))  # 6 versions: a quarter
    assert selector.probability(np.array([0, 1])) == pytest.approx([2 / 3, 1 / 3])
    selector.update(np.array([0]), np.array([4.0]))
    assert selector.probability(np.array([0, 1])) == pytest.approx([1 / 2, 1 / 2])


def test_masses_of_shards_are_measured_from_the_newest_version_that_anyone_named() -> None:
    behind = LagWeightedSelector(4, exponent=1.0, half_life_versions=2.0)
    ahead = LagWeightedSelector(4, exponent=1.0, half_life_versions=2.0)
    fill(behind, [1.0], versions=np.array([6], np.uint32))
    fill(ahead, [1.0], versions=np.array([10], np.uint32))
    assert behind.mass == ahead.mass == 1.0
    behind.advance(10)
    assert (behind.mass, ahead.mass) == (0.25, 1.0)
    behind.advance(3)
    assert behind.mass == 0.25
    recency = RecencySelector(4, half_life=2.0, by_versions=True)
    fill(recency, [1.0], versions=np.array([6], np.uint32))
    recency.advance(10)
    assert recency.mass == 0.25
    by_items = RecencySelector(4, half_life=2.0)
    fill(by_items, [1.0])
    by_items.advance(10)
    assert by_items.mass == 1.0


def test_a_shard_without_weights_is_drawn_from_only_when_all_are_without() -> None:
    for make in (
        lambda: PrioritizedSelector(8, exponent=1.0),
        lambda: LagWeightedSelector(8, exponent=1.0, half_life_versions=1.0),
    ):
        two, three, weighty = make(), make(), make()
        assert two.mass == 0.0
        fill(two, [0.0] * 2)
        fill(three, [0.0] * 3)
        fill(weighty, [1e-30])
        assert three.mass / two.mass == pytest.approx(1.5)
        assert two.mass / (two.mass + weighty.mass) < 1e-200
    behind = LagWeightedSelector(8, exponent=1.0, half_life_versions=1.0)
    fill(behind, [1.0])
    behind.advance(1_000_000)
    assert behind.mass > 0.0


def test_the_largest_priorities_do_not_overflow() -> None:
    selector = LagWeightedSelector(4, exponent=4.0, half_life_versions=1.0)
    fill(selector, [3.4e38, 3.4e38], versions=np.array([0, 255], np.uint32))
    assert np.isfinite(selector.mass)
    assert selector.probability(np.array([1])).tolist() == [1.0]
    assert selector.probability(np.array([0]))[0] == selector.min_probability > 0.0
    apart = PrioritizedSelector(4, exponent=4.0)
    fill(apart, [3.4e38, 1e-45])
    assert (apart.probability(np.array([0, 1])) > 0.0).all()
