"""The formula for a selector's memory against the arrays that it holds."""

from __future__ import annotations

from typing import Any

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
)
from rollstream.replay.selectors import make_selector, slot_bytes

CAPACITY = 1 << 18


def held_bytes(thing: Any, seen: set[int]) -> int:
    """Bytes of all arrays that `thing` leads to, each once."""
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.nbytes if thing.base is None else held_bytes(thing.base, seen)
    if isinstance(thing, list | tuple):
        return sum(held_bytes(one, seen) for one in thing)
    return held_bytes(list(vars(thing).values()), seen) if hasattr(thing, "__dict__") else 0


@pytest.mark.parametrize(
    "rule",
    [
        Uniform(),
        Fifo(),
        Lifo(),
        MinHeap(),
        MaxHeap(),
        Prioritized(),
        WithoutReplacement(),
        Recency(half_life=9.0),
        LagWeighted(half_life_versions=9.0),
        Mixture(parts=((Prioritized(), 1.0), (Fifo(), 1.0))),
    ],
    ids=lambda rule: rule.kind,
)
def test_a_selector_holds_what_the_formula_says(rule: Sampler) -> None:
    selector = make_selector(rule, capacity=CAPACITY)
    slots = np.arange(CAPACITY)
    selector.insert(slots, np.ones(CAPACITY), numbers=slots, versions=np.zeros(CAPACITY, np.uint32))
    selector.select(256, generator=np.random.default_rng(0), uses_left=None)
    assert selector.min_probability > 0.0
    assert held_bytes(selector, set()) == pytest.approx(slot_bytes(rule) * CAPACITY, rel=0.02)
