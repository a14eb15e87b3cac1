"""Selectors against models that walk over all members, under any sequence of inserts, removals and updates."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.replay.block_tree import BlockTree, padded
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
)
from rollstream.replay.selectors import HeapSelector, make_selector
from rollstream.replay.sum_tree import SumTree
from rollstream.seeding import child_generator

CAPACITY = 12
LARGE = 40_000
"""Slots of a tree with two levels below its top."""

PRIORITIES = st.sampled_from([0.0, 1e-12, 0.25, 0.5, 0.5, 1.0, 3.0, 1e12])
RULES = st.sampled_from(
    [
        Uniform(),
        Fifo(),
        Lifo(),
        MinHeap(),
        MaxHeap(),
        Prioritized(exponent=0.0),
        Prioritized(exponent=1.0, stratified=True),
        WithoutReplacement(),
        Recency(half_life=1.0),
        Recency(half_life=1.5, unit="versions"),
        LagWeighted(exponent=1.0, half_life_versions=0.01),
        Mixture(parts=((Fifo(), 1.0), (Prioritized(), 1.0), (WithoutReplacement(), 1.0))),
    ]
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "remove", "update", "look"]), st.lists(PRIORITIES, min_size=1, max_size=6), st.integers(0, 9)
    ),
    max_size=40,
)


class Model:
    """Members one by one: slot -> [priority, number, last write]."""

    def __init__(self) -> None:
        self.members: dict[int, list[float]] = {}
        self.numbers = 0
        self.writes = 0

    def line(self, rule: Sampler) -> list[int]:
        """All members in the order in which a rule of order names them."""
        keys = {
            "fifo": lambda slot: self.members[slot][1],
            "lifo": lambda slot: -self.members[slot][1],
            "min_heap": lambda slot: (self.members[slot][0], self.members[slot][2]),
            "max_heap": lambda slot: (-self.members[slot][0], self.members[slot][2]),
        }
        return sorted(self.members, key=keys[rule.kind])


@settings(max_examples=60, deadline=None)
@given(rule=RULES, steps=STEPS, seed=st.integers(0, 9))
def test_a_selector_names_members_only_and_in_its_order(
    rule: Sampler, steps: list[tuple[str, list[float], int]], seed: int
) -> None:
    selector, model, generator = make_selector(rule, capacity=CAPACITY), Model(), child_generator(seed, "model")
    for step, given_priorities, version in steps:
        priorities = given_priorities
        members = list(model.members)
        if step == "insert":
            free = [slot for slot in range(CAPACITY) if slot not in model.members]
            slots = generator.permutation(free)[: len(priorities)].astype(np.int64)
            priorities = priorities[: len(slots)]
            numbers = np.arange(model.numbers, model.numbers + len(slots))
            selector.insert(slots, np.array(priorities), numbers=numbers, versions=np.full(len(slots), version, np.uint32))
            for slot, priority in zip(slots.tolist(), priorities, strict=True):
                model.members[slot] = [priority, model.numbers, model.writes]
                model.numbers += 1
                model.writes += 1
        elif members and step in ("remove", "update"):
            slots = generator.permutation(members)[: len(priorities)]
            if step == "remove":
                selector.remove(slots)
                for slot in slots.tolist():
                    del model.members[slot]
            else:
                priorities = priorities[: len(slots)]
                selector.update(slots, np.array(priorities))
                for slot, priority in zip(slots.tolist(), priorities, strict=True):
                    model.members[slot] = [priority, model.members[slot][1], model.writes]
                    model.writes += 1
        elif members:
            selection = selector.select(5, generator=generator, uses_left=None)
            assert set(selection.slots.tolist()) <= set(members)
            assert (selection.probability > 0.0).all()
        if not model.members:
            assert selector.sampleable == 0
            continue
        left = selector.select_distinct(min(3, len(model.members)), generator=generator).tolist()
        assert len(set(left)) == len(left)
        assert set(left) <= set(model.members)
        if rule.kind in ("fifo", "lifo", "min_heap", "max_heap"):
            assert left == model.line(rule)[: len(left)]
        all_members = np.array(sorted(model.members))
        probability = selector.probability(all_members)
        assert abs(probability.sum() - 1.0) < 1e-9
        assert 0.0 < selector.min_probability <= probability[probability > 0.0].min() * (1 + 1e-9)
        positive = sum(member[0] > 0.0 for member in model.members.values())
        chosen_by_priority = rule.kind in ("prioritized", "lag_weighted")
        assert selector.sampleable == (positive or len(model.members) if chosen_by_priority else len(model.members))
        if chosen_by_priority and positive:
            assert {slot for slot, chance in zip(all_members.tolist(), probability, strict=True) if chance > 0.0} == {
                slot for slot, member in model.members.items() if member[0] > 0.0
            }


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1_000), capacity=st.sampled_from([1, 7, 4_096, 4_100, LARGE]), zeros=st.sampled_from([0.0, 0.5, 0.99]))
def test_a_sum_tree_agrees_with_running_sums(seed: int, capacity: int, zeros: float) -> None:
    generator = np.random.default_rng(seed)
    tree, weights = SumTree(capacity), np.zeros(capacity)
    for _ in range(4):
        slots = generator.integers(0, capacity, 300)
        given_weights = np.exp(generator.normal(size=300) * 8.0) * (generator.random(300) >= zeros)
        tree.set(slots, given_weights)
        weights[slots] = given_weights
        if not weights.any():
            assert tree.total == 0.0
            assert tree.least == np.inf
            continue
        running = np.cumsum(weights)
        assert abs(tree.total - running[-1]) <= 1e-12 * running[-1]
        assert tree.least == weights[weights > 0.0].min()
        found = tree.find(generator.random(200) * tree.total)
        assert (weights[found] > 0.0).all()
        mass = running[found] - weights[found] * 0.5  # the middle of each range
        well_inside = weights[found] > 1e-9 * running[-1]
        assert (tree.find(mass)[well_inside] == found[well_inside]).all()
    rebuilt = SumTree(capacity)
    rebuilt.set(np.arange(capacity), weights)
    assert rebuilt.total == tree.total


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1_000), count=st.sampled_from([1, 2, 100, 5_000, LARGE]), highest_first=st.booleans())
def test_a_heap_names_the_first_of_many_in_order(seed: int, count: int, highest_first: bool) -> None:
    generator = np.random.default_rng(seed)
    heap = HeapSelector(LARGE, highest_first=highest_first)
    slots = generator.permutation(LARGE)
    priorities = generator.integers(0, 50, LARGE).astype(np.float64)
    heap.insert(slots, priorities, numbers=np.arange(LARGE), versions=np.zeros(LARGE, np.uint32))
    order = np.lexsort((np.arange(LARGE), -priorities if highest_first else priorities))
    assert heap.select_distinct(count, generator=generator).tolist() == slots[order][:count].tolist()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1_000))
def test_a_tree_is_the_same_whichever_way_its_leaves_were_written(seed: int) -> None:
    generator = np.random.default_rng(seed)
    leaves = np.zeros(padded(LARGE))
    tree = BlockTree(leaves, np.add, keeps_starts=True)
    for _ in range(5):
        slots = generator.integers(0, LARGE, 500)
        leaves[slots] = generator.random(500)
        tree.touch(slots)
        tree.settle()
    whole = BlockTree(leaves.copy(), np.add, keeps_starts=True)
    whole.combine_all()
    for ours, theirs in zip(tree.levels, whole.levels, strict=True):
        assert (ours == theirs).all()
    for ours_before, theirs_before in zip(tree.starts, whole.starts, strict=True):
        assert (ours_before[0] == theirs_before[0]).all()
