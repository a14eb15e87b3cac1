"""Selectors as settings: how items are drawn from a table, and which one leaves when it is full. All can stand on both sides.

`rollstream.replay.selectors` has what they do.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from rollstream.config import Frozen
from rollstream.errors import ConfigError

__all__ = [
    "Fifo",
    "LagWeighted",
    "Lifo",
    "MaxHeap",
    "MinHeap",
    "Mixture",
    "Plugin",
    "Prioritized",
    "Recency",
    "Sampler",
    "Uniform",
    "WithoutReplacement",
    "goes_by_order",
]


class Uniform(Frozen):
    """Every item with the same probability."""

    kind: Literal["uniform"] = "uniform"
    """Tells selectors apart in JSON."""


class Fifo(Frozen):
    """The oldest item first."""

    kind: Literal["fifo"] = "fifo"
    """Tells selectors apart in JSON."""


class Lifo(Frozen):
    """The newest item first."""

    kind: Literal["lifo"] = "lifo"
    """Tells selectors apart in JSON."""


class MinHeap(Frozen):
    """The item of lowest priority first; of equal ones that which was inserted or updated least recently."""

    kind: Literal["min_heap"] = "min_heap"
    """Tells selectors apart in JSON."""


class MaxHeap(Frozen):
    """The item of highest priority first; of equal ones that which was inserted or updated least recently."""

    kind: Literal["max_heap"] = "max_heap"
    """Tells selectors apart in JSON."""


class Prioritized(Frozen):
    """An item with probability priority ** exponent / sum over all items.

    Priority 0 means never (and such items do not count as sampleable), unless every item has priority 0: then uniform.
    """

    kind: Literal["prioritized"] = "prioritized"
    """Tells selectors apart in JSON."""
    exponent: float = Field(default=0.6, ge=0.0, le=4.0)
    """0 ignores priorities, 1 is proportional; 0.6 is the value of the prioritized replay paper. Above 4 doubles overflow."""
    stratified: bool = False
    """Whether a batch of k draws one item from each k-th of the total weight: same probabilities, less variance in a batch."""


class WithoutReplacement(Frozen):
    """Random order, no item twice before all came once; new items join the pass that is under way."""

    kind: Literal["without_replacement"] = "without_replacement"
    """Tells selectors apart in JSON."""


class Recency(Frozen):
    """An item with weight 0.5 ** (age / half_life): newer ones more often."""

    kind: Literal["recency"] = "recency"
    """Tells selectors apart in JSON."""
    half_life: float = Field(ge=1.0, allow_inf_nan=False)
    """Age at which an item comes half as often as a new one; about half of max_items makes the oldest rare, not absent."""
    unit: Literal["items", "versions"] = "items"
    """What age counts: items inserted since, or versions of the weights since those that acted in the item's newest row."""


class LagWeighted(Frozen):
    """An item with weight priority ** exponent * 0.5 ** (lag / half_life_versions), lag in versions of the weights."""

    kind: Literal["lag_weighted"] = "lag_weighted"
    """Tells selectors apart in JSON."""
    exponent: float = Field(default=0.6, ge=0.0, le=4.0)
    """0 ignores priorities, 1 is proportional; 0.6 is the value of the prioritized replay paper."""
    half_life_versions: float = Field(gt=0.0, allow_inf_nan=False)
    """Lag behind the newest version at which an item comes half as often as a fresh one of its priority."""


class Plugin(Frozen):
    """A selector that a user wrote, by the name under which it was registered or installed (see `register_selector`)."""

    kind: Literal["plugin"] = "plugin"
    """Tells selectors apart in JSON."""
    name: str = Field(min_length=1)
    """As given to `register_selector`, or the name of the entry point in the group `rollstream.selectors`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Handed to the factory as keyword arguments; none by default, since only the plug-in knows them."""


Part: TypeAlias = Annotated[
    Uniform | Fifo | Lifo | MinHeap | MaxHeap | Prioritized | WithoutReplacement | Recency | LagWeighted | Plugin,
    Field(discriminator="kind"),
]


class Mixture(Frozen):
    """Each draw asks one of several selectors, chosen by weight.

    Nine draws by priority to one that gives every item its chance: `Mixture(parts=((Prioritized(), 9.0), (Uniform(), 1.0)))`.
    """

    kind: Literal["mixture"] = "mixture"
    """Tells selectors apart in JSON."""
    parts: tuple[tuple[Part, float], ...] = Field(min_length=1)
    """Selectors and how often each is asked relative to the others: `[[selector, weight], ...]`, weights > 0."""

    @model_validator(mode="after")
    def _weights_are_positive(self) -> Mixture:
        for part, weight in self.parts:
            if not (weight > 0 and math.isfinite(weight)):
                raise ConfigError(
                    f"weights of a mixture must be > 0, got {weight:g} for {part.kind}; leave out what is never asked"
                )
        return self


Sampler: TypeAlias = Annotated[
    Uniform | Fifo | Lifo | MinHeap | MaxHeap | Prioritized | WithoutReplacement | Recency | LagWeighted | Mixture | Plugin,
    Field(discriminator="kind"),
]


def goes_by_order(rule: Sampler) -> bool:
    """Whether the rule names certain items rather than draws; over several shards that order would not be the table's."""
    if isinstance(rule, Mixture):
        return any(goes_by_order(part) for part, _ in rule.parts)
    return isinstance(rule, Fifo | Lifo | MinHeap | MaxHeap)
