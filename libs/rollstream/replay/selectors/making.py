"""From the settings of a selector to the selector."""

from __future__ import annotations

from rollstream.replay.selector_spec import (
    Fifo,
    LagWeighted,
    Lifo,
    MaxHeap,
    MinHeap,
    Mixture,
    Plugin,
    Prioritized,
    Recency,
    Sampler,
    Uniform,
    WithoutReplacement,
)
from rollstream.replay.selectors.arrival import ArrivalSelector
from rollstream.replay.selectors.heap import HeapSelector
from rollstream.replay.selectors.mixture import MixtureSelector
from rollstream.replay.selectors.passes import PassSelector
from rollstream.replay.selectors.plugin import PluginSelector
from rollstream.replay.selectors.prioritized import PrioritizedSelector
from rollstream.replay.selectors.protocol import Selector
from rollstream.replay.selectors.recency import LagWeightedSelector, RecencySelector
from rollstream.replay.selectors.uniform import UniformSelector

__all__ = ["make_selector"]


def make_selector(rule: Sampler, *, capacity: int, shards: int = 1) -> Selector:
    """An empty selector for slots 0..capacity-1.

    Args:
        shards: of the table; each sees one in so many of its items, so ages counted in items are worth as many more.
    """
    match rule:
        case Uniform():
            return UniformSelector(capacity)
        case Fifo() | Lifo():
            return ArrivalSelector(capacity, newest_first=isinstance(rule, Lifo))
        case MinHeap() | MaxHeap():
            return HeapSelector(capacity, highest_first=isinstance(rule, MaxHeap))
        case Prioritized():
            return PrioritizedSelector(capacity, exponent=rule.exponent, stratified=rule.stratified)
        case WithoutReplacement():
            return PassSelector(capacity)
        case Recency():
            by_versions = rule.unit == "versions"
            half_life = rule.half_life if by_versions else rule.half_life / shards
            return RecencySelector(capacity, half_life=half_life, by_versions=by_versions)
        case LagWeighted():
            return LagWeightedSelector(capacity, exponent=rule.exponent, half_life_versions=rule.half_life_versions)
        case Mixture():
            parts = [make_selector(part, capacity=capacity, shards=shards) for part, _ in rule.parts]
            return MixtureSelector(parts, weights=[weight for _, weight in rule.parts])
        case Plugin():
            return PluginSelector(rule.name, rule.options, capacity=capacity)
