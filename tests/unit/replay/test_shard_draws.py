"""Splitting batches over shards, and putting the parts together again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.replay.item_keys import make_keys, shard_of
from rollstream.replay.samples import COLUMNS, SampledItems, SampleReply
from rollstream.replay.shard_draws import BatchPlan, split_batch


def items(shard: int, count: int, *, probability: float = 0.5, table_items: int = 10) -> SampledItems:
    columns: dict[str, Any] = {name: np.zeros(count, dtype) for name, dtype in COLUMNS}
    columns["keys"] = make_keys(shard, 1, 0, count)
    columns["probability"] = np.full(count, probability)
    columns["start"] = np.arange(count, dtype=np.uint64)
    return SampledItems(**columns, table_items=table_items)


def reply(shard: int, *counts: int, mass: float = 1.0, newest_version: int = 0, min_probability: float = 0.1) -> SampleReply:
    return SampleReply(
        counts=np.array(counts, np.uint32),
        items=items(shard, sum(counts)),
        mass=mass,
        newest_version=newest_version,
        min_probability=min_probability,
    )


def make_plan(shards: int, *, seed: int = 0) -> BatchPlan:
    return BatchPlan(shards, generator=np.random.default_rng(seed))


def give_all(plan: BatchPlan, *, shards: int, mass: float = 1.0) -> None:
    for shard in range(shards):
        owed = plan.owed_by(shard).tolist()
        plan.deliver(shard, reply(shard, *owed, mass=mass), at_s=0.0)


def surprise(observed: np.ndarray, expected: np.ndarray) -> float:
    """How many standard deviations chi-square lies above what chance gives (Wilson and Hilferty's normal approximation)."""
    freedom = len(observed) - 1
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))


def binomial(trials: int, share: float) -> np.ndarray:
    return np.array([math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(trials + 1)])


def test_with_one_shard_everything_comes_from_it_whatever_its_mass() -> None:
    assert split_batch(256, np.zeros(1), batches=2, generator=np.random.default_rng(0)).tolist() == [[256], [256]]


def test_shares_are_drawn_by_mass_and_not_fixed() -> None:
    masses = np.array([1.0, 2.0, 5.0])
    counts = split_batch(64, masses, batches=4000, generator=np.random.default_rng(1))
    assert (counts.sum(axis=1) == 64).all()
    for shard, share in enumerate(masses / 8.0):
        observed = np.bincount(counts[:, shard], minlength=65).astype(float)
        expected = binomial(64, share) * len(counts)
        common = expected >= 5.0
        observed, expected = (np.append(each[common], each[~common].sum()) for each in (observed, expected))
        assert surprise(observed, expected) < 4.0


def test_a_shard_without_mass_is_never_asked() -> None:
    counts = split_batch(100, np.array([0.0, 3.0]), batches=50, generator=np.random.default_rng(2))
    assert (counts[:, 0] == 0).all()


def test_probabilities_become_those_of_the_whole_table() -> None:
    plan = make_plan(2)
    plan.add(64, batches=1, masses=np.array([1.0, 3.0]))
    give_all(plan, shards=2)
    drawn = plan.take()
    share = np.where(shard_of(drawn.items.keys) == 0, 0.25, 0.75)
    assert drawn.items.probability.tolist() == (0.5 * share).tolist()
    assert drawn.items.table_items == 20
    assert drawn.min_probability == pytest.approx(0.25 * 0.1)


def test_the_place_in_a_batch_tells_nothing_about_the_shard() -> None:
    plan = make_plan(2, seed=3)
    plan.add(2, batches=4000, masses=np.ones(2))
    give_all(plan, shards=2)
    shards = np.array([shard_of(plan.take().items.keys) for _ in range(4000)])
    for place in (0, 1):
        assert surprise(np.bincount(shards[:, place], minlength=2), np.full(2, 2000.0)) < 4.0


def test_items_keep_their_columns_together() -> None:
    plan = make_plan(3, seed=4)
    plan.add(50, batches=1, masses=np.array([1.0, 2.0, 3.0]))
    give_all(plan, shards=3)
    drawn = plan.take().items
    assert ((drawn.keys & np.uint64(0xFFFFFFFF)) == drawn.start).all()
    assert len(set(drawn.keys.tolist())) == 50


def test_a_batch_waits_for_all_its_parts_and_keeps_those_that_came() -> None:
    plan = make_plan(2)
    plan.add(64, batches=1, masses=np.ones(2))
    owed = [int(plan.owed_by(shard)[0]) for shard in (0, 1)]
    assert plan.untouched
    plan.deliver(0, reply(0, owed[0]), at_s=0.0)
    assert (plan.ready, plan.untouched, plan.owing()) == (False, False, [1])
    assert len(plan.owed_by(0)) == 0
    plan.deliver(1, reply(1, owed[1]), at_s=0.0)
    assert plan.ready
    assert len(plan.take().items) == 64


def test_a_shard_may_answer_only_the_first_of_several_batches() -> None:
    plan = make_plan(1)
    plan.add(8, batches=3, masses=np.ones(1))
    assert plan.owed_by(0).tolist() == [8, 8, 8]
    plan.deliver(0, reply(0, 8, 8), at_s=0.0)
    assert plan.owed_by(0).tolist() == [8]
    assert [len(plan.take().items), len(plan.take().items), plan.ready, len(plan)] == [8, 8, False, 1]


def test_what_an_emptied_shard_owes_is_given_by_the_others() -> None:
    plan = make_plan(3)
    plan.add(90, batches=1, masses=np.ones(3))
    plan.deliver(0, reply(0, *plan.owed_by(0).tolist(), mass=1.0), at_s=0.0)
    plan.deliver(1, reply(1, *plan.owed_by(1).tolist(), mass=1.0), at_s=0.0)
    plan.stand(2, reply(2, mass=0.0), at_s=0.0)
    owed = int(plan.owed_by(2)[0])
    plan.move(2)
    assert sum(int(plan.owed_by(shard).sum()) for shard in (0, 1)) == owed
    assert len(plan.owed_by(2)) == 0
    for shard in plan.owing():
        plan.deliver(shard, reply(shard, *plan.owed_by(shard).tolist()), at_s=0.0)
    drawn = plan.take().items
    assert len(drawn) == 90
    assert sorted(set(drawn.probability.tolist())) == pytest.approx([0.5 / 3, 0.5 / 2])  # with which each really was drawn


def test_how_shards_stand_is_remembered() -> None:
    plan = make_plan(2)
    assert plan.oldest_standing_s() is None
    plan.stand(0, reply(0, mass=2.0, newest_version=7), at_s=5.0)
    plan.stand(1, reply(1, mass=1.0, newest_version=9), at_s=3.0)
    assert plan.masses().tolist() == [2.0, 1.0]
    assert plan.oldest_standing_s() == 3.0
    plan.add(4, batches=1, masses=plan.masses())
    plan.deliver(0, reply(0, *plan.owed_by(0).tolist(), newest_version=7), at_s=6.0)
    plan.deliver(1, reply(1, *plan.owed_by(1).tolist(), newest_version=9), at_s=6.0)
    assert plan.take().newest_version == 9


def test_answers_that_were_not_asked_for_are_refused() -> None:
    plan = make_plan(1)
    plan.add(8, batches=1, masses=np.ones(1))
    with pytest.raises(SchemaMismatch, match="shard 0 answered 2 batches where 1 were asked for"):
        plan.deliver(0, reply(0, 8, 8), at_s=0.0)
    with pytest.raises(SchemaMismatch, match="shard 0 answered a batch of 5 items where 8 were asked for"):
        plan.deliver(0, reply(0, 5), at_s=0.0)
