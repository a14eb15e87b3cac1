"""All selectors on both sides: distributions against exact ones after a life of inserts, updates and removals; order; restoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from rollstream.replay.selector_spec import (
    Fifo,
    LagWeighted,
    Lifo,
    MaxHeap,
    MinHeap,
    Mixture,
    Prioritized,
    Recency,
    Sampler,
    Uniform,
    WithoutReplacement,
    goes_by_order,
)
from rollstream.replay.selectors import Selector, make_selector
from rollstream.seeding import child_generator

CAPACITY = 24
MIXTURE = Mixture(parts=((Prioritized(exponent=1.0), 6.0), (Uniform(), 1.0), (Fifo(), 1.0)))
RULES: list[Sampler] = [
    Uniform(),
    Fifo(),
    Lifo(),
    MinHeap(),
    MaxHeap(),
    Prioritized(exponent=0.7),
    Prioritized(exponent=0.7, stratified=True),
    WithoutReplacement(),
    Recency(half_life=6.0),
    Recency(half_life=2.0, unit="versions"),
    LagWeighted(exponent=0.5, half_life_versions=2.0),
    MIXTURE,
    Mixture(parts=((WithoutReplacement(), 0.5), (Lifo(), 0.25), (MaxHeap(), 0.25))),
]
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)


@dataclass(frozen=True, slots=True)
class Member:
    priority: float
    number: int
    version: int
    written: int


@dataclass
class Life:
    """A selector and what it ought to know, written down one by one."""

    selector: Selector
    members: dict[int, Member]
    number: int = 0
    written: int = 0

    def insert(self, slots: list[int], priorities: list[float], version: int) -> None:
        numbers = np.arange(self.number, self.number + len(slots))
        self.selector.insert(
            np.array(slots), np.array(priorities), numbers=numbers, versions=np.full(len(slots), version, np.uint32)
        )
        for slot, priority in zip(slots, priorities, strict=True):
            self.members[slot] = Member(priority, self.number, version, self.written)
            self.number += 1
            self.written += 1

    def remove(self, slots: list[int]) -> None:
        self.selector.remove(np.array(slots))
        for slot in slots:
            del self.members[slot]

    def update(self, slots: list[int], priorities: list[float]) -> None:
        self.selector.update(np.array(slots), np.array(priorities))
        for slot, priority in zip(slots, priorities, strict=True):
            self.members[slot] = Member(priority, self.members[slot].number, self.members[slot].version, self.written)
            self.written += 1


def lived(rule: Sampler, *, seed: int = 0) -> Life:
    """A selector that was full, lost items at both ends and in the middle, got them back, and was updated."""
    generator = child_generator(seed, "life")
    life = Life(make_selector(rule, capacity=CAPACITY), {})
    slots = generator.permutation(CAPACITY).tolist()
    life.insert(slots[:15], generator.random(15).tolist(), version=1)
    life.insert(slots[15:], generator.random(9).tolist(), version=3)
    others = [slot for slot in slots if slot not in {0, 3, 4, 8, 10, 12, CAPACITY - 1}]
    life.remove([0, CAPACITY - 1, *others[:3]])
    life.update([8, 3, 12], [0.0, 2.5, 2.5])
    life.insert([CAPACITY - 1, 0], [0.6, 0.9], version=4)
    life.remove([10])
    life.update([4, 0], [2.5, 0.1])
    assert {0, CAPACITY - 1} <= set(life.members)
    return life


def exact(rule: Sampler, members: Mapping[int, Member]) -> np.ndarray:
    """The probability [CAPACITY] of one draw, from the definitions."""
    if isinstance(rule, Mixture):
        shares = np.array([weight for _, weight in rule.parts])
        return np.sum(
            [share * exact(part, members) for share, (part, _) in zip(shares / shares.sum(), rule.parts, strict=True)], axis=0
        )
    weight = np.zeros(CAPACITY)
    for slot, one in members.items():
        number_age = max(other.number for other in members.values()) - one.number
        lag = max(other.version for other in members.values()) - one.version
        match rule:
            case Uniform() | WithoutReplacement():
                weight[slot] = 1.0
            case Prioritized():
                weight[slot] = one.priority**rule.exponent if one.priority else 0.0
            case Recency():
                weight[slot] = 0.5 ** ((number_age if rule.unit == "items" else lag) / rule.half_life)
            case LagWeighted():
                weight[slot] = one.priority**rule.exponent * 0.5 ** (lag / rule.half_life_versions)
    match rule:
        case Fifo():
            weight[min(members, key=lambda slot: members[slot].number)] = 1.0
        case Lifo():
            weight[max(members, key=lambda slot: members[slot].number)] = 1.0
        case MinHeap():
            weight[min(members, key=lambda slot: (members[slot].priority, members[slot].written))] = 1.0
        case MaxHeap():
            weight[min(members, key=lambda slot: (-members[slot].priority, members[slot].written))] = 1.0
    return weight / weight.sum()


def require_distribution(slots: np.ndarray, probability: np.ndarray) -> None:
    """Chi-square: draws as unlikely as these come once in a million seeds."""
    counts = np.bincount(slots, minlength=len(probability))
    assert not counts[probability == 0.0].any()
    possible = probability > 0.0
    expected = probability[possible] * counts.sum()
    statistic = float(((counts[possible] - expected) ** 2 / expected).sum())
    freedom = max(1, int(possible.sum()) - 1)
    share = 2.0 / (9.0 * freedom)
    assert statistic <= freedom * (1.0 - share + 4.75 * share**0.5) ** 3  # Wilson and Hilferty's quantile


@every_rule
@pytest.mark.parametrize("seed", [0, 1])
def test_samples_follow_the_exact_distribution_and_report_it(rule: Sampler, seed: int) -> None:
    life = lived(rule, seed=seed)
    probability = exact(rule, life.members)
    generator = child_generator(seed, "draws")
    selections = [life.selector.select(64, generator=generator, uses_left=None) for _ in range(300)]
    slots = np.concatenate([selection.slots for selection in selections])
    require_distribution(slots, probability)
    reported = np.concatenate([selection.probability for selection in selections])
    assert reported == pytest.approx(probability[slots], rel=1e-9)
    members = np.array(sorted(life.members))
    assert life.selector.probability(members) == pytest.approx(probability[members], rel=1e-9)


@every_rule
def test_the_first_to_leave_follows_the_exact_distribution(rule: Sampler) -> None:
    life = lived(rule)
    generator = child_generator(3, "leave")
    first = np.array([life.selector.select_distinct(3, generator=generator)[0] for _ in range(3000)])
    require_distribution(first, exact(rule, life.members))


@pytest.mark.parametrize("rule", [rule for rule in RULES if not isinstance(rule, Mixture)], ids=lambda rule: rule.kind)
def test_the_second_to_leave_is_drawn_from_the_rest(rule: Sampler) -> None:
    life = lived(rule)
    generator = child_generator(4, "leave")
    second = np.array([life.selector.select_distinct(5, generator=generator)[1] for _ in range(3000)])
    expected = np.zeros(CAPACITY)
    for slot, chance in enumerate(exact(rule, life.members)):
        if chance:
            expected += chance * exact(rule, {other: one for other, one in life.members.items() if other != slot})
    require_distribution(second, expected)


@every_rule
def test_the_smallest_probability_is_that_of_the_rarest_member(rule: Sampler) -> None:
    life = lived(rule)
    for _ in range(2):
        probability = exact(rule, life.members)
        assert life.selector.min_probability == pytest.approx(probability[probability > 0.0].min(), rel=1e-9)
        life.update([0], [0.001])


@every_rule
def test_removed_slots_are_never_drawn_again(rule: Sampler) -> None:
    selector = make_selector(rule, capacity=32)
    life = Life(selector, {})
    life.insert(list(range(32)), [1.0] * 32, version=1)
    life.remove([0, 5, 31, 30])
    life.remove(list(range(10, 20)))
    assert selector.sampleable == 18
    drawn = selector.select(500, generator=child_generator(7, "draw"), uses_left=None).slots
    assert set(drawn.tolist()) <= set(life.members)
    assert set(selector.select_distinct(18, generator=child_generator(7, "draw")).tolist()) == set(life.members)


@every_rule
def test_distinct_draws_are_distinct_members_however_many(rule: Sampler) -> None:
    life = lived(rule)
    for count in (0, 1, 7, 12, len(life.members)):
        chosen = life.selector.select_distinct(count, generator=child_generator(count, "leave")).tolist()
        assert len(set(chosen)) == len(chosen) == count
        assert set(chosen) <= set(life.members)


@every_rule
def test_the_same_seed_draws_the_same_slots(rule: Sampler) -> None:
    def draws() -> list[int]:
        selector = lived(rule).selector
        generator = child_generator(5, "draw")
        first = selector.select(50, generator=generator, uses_left=None).slots.tolist()
        return first + selector.select_distinct(9, generator=generator).tolist()

    assert draws() == draws()


@every_rule
def test_a_restored_selector_draws_what_the_saved_one_would_have_drawn(rule: Sampler) -> None:
    life = lived(rule)
    life.selector.select(33, generator=child_generator(6, "before"), uses_left=None)
    order = life.selector.order()
    by_age = sorted(life.members, key=lambda slot: life.members[slot].number)
    slots = np.array(by_age) if order is None else order
    assert sorted(slots.tolist()) == sorted(life.members)
    known = [life.members[slot] for slot in slots.tolist()]
    restored = make_selector(rule, capacity=CAPACITY)
    restored.insert(
        slots,
        np.array([one.priority for one in known]),
        numbers=np.array([one.number for one in known]),
        versions=np.array([one.version for one in known], np.uint32),
    )
    restored.resume(life.selector.facts())
    assert restored.sampleable == life.selector.sampleable
    assert restored.mass == life.selector.mass
    for selector in (life.selector, restored):
        selector.update(np.array([3, 0]), np.array([0.6, 0.6]))
    ours, theirs = child_generator(8, "after"), child_generator(8, "after")
    for _ in range(3):
        expected = life.selector.select(40, generator=ours, uses_left=None)
        found = restored.select(40, generator=theirs, uses_left=None)
        assert found.slots.tolist() == expected.slots.tolist()
        assert found.probability.tolist() == expected.probability.tolist()
        leaving = life.selector.select_distinct(4, generator=ours)
        assert restored.select_distinct(4, generator=theirs).tolist() == leaving.tolist()
        life.selector.remove(leaving)
        restored.remove(leaving)


@every_rule
def test_empty_batches_change_nothing(rule: Sampler) -> None:
    life = lived(rule)
    nothing, no_weights = np.zeros(0, np.int64), np.zeros(0)
    before = life.selector.probability(np.array([0, 3, 23])).tolist()
    life.selector.insert(nothing, no_weights, numbers=nothing, versions=nothing)
    life.selector.update(nothing, no_weights)
    life.selector.remove(nothing)
    assert len(life.selector.select(0, generator=child_generator(1, "none"), uses_left=None).slots) == 0
    assert life.selector.probability(np.array([0, 3, 23])).tolist() == before
    assert len(life.selector.select_distinct(len(life.members), generator=child_generator(1, "all"))) == len(life.members)


@every_rule
def test_an_emptied_selector_can_be_filled_again(rule: Sampler) -> None:
    life = lived(rule)
    life.remove(sorted(life.members))
    assert life.selector.sampleable == 0
    assert len(life.selector.select_distinct(0, generator=child_generator(9, "none"))) == 0
    life.insert([7], [0.5], version=9)
    selection = life.selector.select(3, generator=child_generator(9, "draw"), uses_left=None)
    assert selection.slots.tolist() == [7, 7, 7]
    assert selection.probability.tolist() == pytest.approx([1.0] * 3)


def test_rules_of_order_are_told_from_those_of_chance() -> None:
    assert [rule.kind for rule in RULES if goes_by_order(rule)] == ["fifo", "lifo", "min_heap", "max_heap", "mixture", "mixture"]
    assert not goes_by_order(Mixture(parts=((Uniform(), 1.0), (Recency(half_life=5.0), 1.0))))
