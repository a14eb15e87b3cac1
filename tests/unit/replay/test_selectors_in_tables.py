"""Every selector on both sides of a table: turnover, use, updates, deletion, and a live change to any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.replay.group import TableGroup
from rollstream.replay.log import DeleteEntry, InsertEntry
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
from rollstream.replay.spec import TableSpec
from rollstream.replay.table import Table

MAX_ITEMS = 40
RULES: list[Sampler] = [
    Uniform(),
    Fifo(),
    Lifo(),
    MinHeap(),
    MaxHeap(),
    Prioritized(),
    WithoutReplacement(),
    Recency(half_life=10.0),
    LagWeighted(half_life_versions=2.0),
    Mixture(parts=((Prioritized(stratified=True), 2.0), (Fifo(), 1.0), (WithoutReplacement(), 1.0))),
]
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)


def make_group(**changes: Any) -> TableGroup:
    rows = [["reward", "<f4", []]]
    return TableGroup(TableSpec(**{"name": "replay", "max_items": MAX_ITEMS, "rows": rows, **changes}), seed=1)


def insert(group: TableGroup, count: int, turn: int) -> None:
    """One flush of `count` items of one row each, with priorities from 0 on."""
    first = turn * count
    assert group.begin(
        InsertEntry(
            writer=1,
            sequence=turn + 1,
            keep=np.array([first + count], np.uint64),
            end=np.array([first + count], np.uint64),
            start=np.arange(first, first + count, dtype=np.uint64),
            env=np.zeros(count, np.uint32),
            length=np.ones(count, np.uint32),
            version=np.full(count, turn, np.uint32),
            episode_env=np.zeros(0, np.uint32),
            episode_start=np.zeros(0, np.uint64),
            first_ordinal=first,
            priority=np.random.default_rng(turn).integers(0, 5, count).astype(np.float32),
        )
    )
    group.admit()


def require_agreement(table: Table) -> None:
    """Sampler and remover know exactly the items that there are."""
    live = set(table.items.live().tolist())
    for selector in (table.sampler, table.remover):
        members = selector.select_distinct(len(live), generator=np.random.default_rng(0))
        assert set(members.tolist()) == live


@every_rule
@pytest.mark.parametrize("side", ["sampler", "remover"])
def test_a_full_table_turns_over(rule: Sampler, side: str) -> None:
    group = make_group(**{side: rule})
    table = group.primary
    for turn in range(30):
        insert(group, 7, turn)
        sampled = table.sample(16)
        assert (sampled.probability > 0.0).all()
        assert table.items.find(sampled.keys)[1].all()
        table.update(sampled.keys, np.abs(np.sin(np.arange(16) + turn)).astype(np.float32))
        if turn % 5 == 4:
            group.delete(DeleteEntry(keys=table.items.key[table.items.live()[:3]]))
    assert table.size == MAX_ITEMS - 3
    require_agreement(table)


@every_rule
def test_items_leave_with_their_last_use(rule: Sampler) -> None:
    group = make_group(sampler=rule, remover=Uniform(), max_times_sampled=3)
    table = group.primary
    for turn in range(10):
        insert(group, 4, turn)
    uses: dict[int, int] = {}
    while table.can_sample(8):
        for key in table.sample(8).keys.tolist():
            uses[key] = uses.get(key, 0) + 1
    assert table.size < 8
    assert max(uses.values()) == 3
    assert sum(uses.values()) == 120 - sum(3 - int(times) for times in table.items.times_sampled[table.items.live()])
    require_agreement(table)


@every_rule
def test_a_living_table_can_change_to_any_selector(rule: Sampler) -> None:
    group = make_group(sampler=Prioritized(), remover=MaxHeap())
    table = group.primary
    for turn in range(20):
        insert(group, 7, turn)
    table.apply(table.spec.model_copy(update={"sampler": rule, "remover": rule, "max_items": 25}))
    assert table.size == 25
    require_agreement(table)
    for turn in range(20, 30):
        insert(group, 7, turn)
        table.sample(5)
    assert table.size == 25
    require_agreement(table)
