"""How many bytes a selector needs for each slot: arithmetic over its arrays, so that a table's memory can be told before it is made."""

from __future__ import annotations

from rollstream.replay.block_tree import FAN
from rollstream.replay.selector_spec import (
    LagWeighted,
    Mixture,
    Plugin,
    Prioritized,
    Recency,
    Sampler,
    Uniform,
    WithoutReplacement,
)

__all__ = ["slot_bytes"]

FLAG = 1.0
PLACE = 4.0
LEVELS = 8.0 / (FAN - 1)
"""All levels above the leaves of a tree of eight-byte numbers."""


def slot_bytes(rule: Sampler) -> float:
    """Bytes a slot of the selector of `rule`; of a plug-in only what surrounds it."""
    match rule:
        case Uniform() | Plugin():
            return FLAG
        case WithoutReplacement():
            return FLAG + 3 * PLACE
        case Prioritized() | Recency():
            return FLAG + 8.0 + 3 * LEVELS  # sums, sums of elder siblings, least weights
        case LagWeighted():
            return FLAG + 8.0 + 3 * LEVELS + PLACE
        case Mixture():
            return sum(slot_bytes(part) for part, _ in rule.parts)
        case _ if rule.kind in ("min_heap", "max_heap"):
            return 8.0 + LEVELS
        case _:
            return PLACE + 1.25 * PLACE  # places in a ring a quarter longer than the table
