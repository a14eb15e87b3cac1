"""Limiters as settings: who waits for whom. Each is refused when both sides could wait for each other, with the inequality.

All say the same four numbers, so that nobody needs to know which kind it is; `rollstream.replay.limiter` holds the formulas:

    kind                     samples_per_insert  min_items  min_diff                 max_diff
    MinSize(m)               1                   m          -inf                     +inf
    SampleToInsertRatio      as set              as set     spi * m - tolerance      spi * m + tolerance      (or as set)
    Queue(n), Stack(n)       1                   1          0                        n
    RateLimit                as set              as set     as set                   as set
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PlainSerializer, SerializerFunctionWrapHandler, model_serializer, model_validator

from rollstream.config import Frozen
from rollstream.errors import ConfigError

__all__ = ["Limiter", "MinSize", "Queue", "RateLimit", "SampleToInsertRatio", "Stack"]

Bound: TypeAlias = Annotated[
    float, PlainSerializer(lambda value: value if math.isfinite(value) else str(value), when_used="json")
]
"""JSON has no infinity; `inf` and `-inf` as text are read back as numbers."""


class MinSize(Frozen):
    """Sampling waits until the table holds `min_items`; inserts never wait for samples."""

    kind: Literal["min_size"] = "min_size"
    """Tells limiters apart in JSON."""
    min_items: int = Field(default=1, ge=1)
    """Items needed before the first sample; 1 because an empty table cannot be sampled."""

    @property
    def samples_per_insert(self) -> float:
        return 1.0

    @property
    def min_diff(self) -> float:
        return -math.inf

    @property
    def max_diff(self) -> float:
        return math.inf


class SampleToInsertRatio(Frozen):
    """Keeps sampled = samples_per_insert x inserted, within a tolerance; whoever runs ahead waits for the other.

    Either by a tolerance, the same in both directions, or by the interval itself, `min_diff` and `max_diff`.
    """

    kind: Literal["sample_to_insert_ratio"] = "sample_to_insert_ratio"
    """Tells limiters apart in JSON."""
    samples_per_insert: float
    """How often an item is sampled on average."""
    min_items: int = Field(ge=1)
    """Items needed before the first sample; up to here inserts never wait."""
    tolerance_items: float | None = None
    """How many sampled items the two sides may drift from the exact ratio, in each direction, before one waits."""
    min_diff: Bound = Field(default=-math.inf, json_schema_extra={"default": "-inf"})
    """Instead of a tolerance: inserted * samples_per_insert - sampled below which samplers wait."""
    max_diff: Bound = Field(default=math.inf, json_schema_extra={"default": "inf"})
    """Instead of a tolerance: inserted * samples_per_insert - sampled above which writers wait."""

    @model_validator(mode="after")
    def _ratio_can_work(self) -> SampleToInsertRatio:
        ratio, tolerance = self.samples_per_insert, self.tolerance_items
        _require_ratio(ratio)
        interval = (self.min_diff, self.max_diff)
        if tolerance is None:
            if interval == (-math.inf, math.inf):
                raise ConfigError("tolerance_items is missing; give it, or the interval as min_diff and max_diff")
            _require_interval(self)
            return self
        if not (tolerance >= max(1.0, ratio) and math.isfinite(tolerance)):
            raise ConfigError(
                f"tolerance_items >= max(1, samples_per_insert) fails: {tolerance:g} < {max(1.0, ratio):g}; "
                "both sides would wait for each other, so raise tolerance_items"
            )
        middle = ratio * self.min_items
        if interval not in ((-math.inf, math.inf), (middle - tolerance, middle + tolerance)):
            raise ConfigError(
                f"tolerance_items {tolerance:g} and the interval min_diff {self.min_diff:g}, max_diff {self.max_diff:g} exclude each "
                "other; give one of them"
            )
        object.__setattr__(self, "min_diff", middle - tolerance)
        object.__setattr__(self, "max_diff", middle + tolerance)
        return self

    @model_serializer(mode="wrap")
    def _as_it_was_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without the interval when it follows from the tolerance: whoever changes one of them then changes one."""
        fields: dict[str, Any] = handler(self)
        if self.tolerance_items is not None:
            del fields["min_diff"], fields["max_diff"]
        return fields


class Queue(Frozen):
    """Every item is sampled once; writers wait while `max_items` are unsampled, samplers while none is.

    Belongs with Fifo on both sides and max_times_sampled=1.
    """

    kind: Literal["queue"] = "queue"
    """Tells limiters apart in JSON."""
    max_items: int = Field(ge=1)
    """Unsampled items at which writers wait; the table's own max_items must not be less."""

    @property
    def samples_per_insert(self) -> float:
        return 1.0

    @property
    def min_items(self) -> int:
        return 1

    @property
    def min_diff(self) -> float:
        return 0.0

    @property
    def max_diff(self) -> float:
        return float(self.max_items)


class Stack(Frozen):
    """As Queue, for a table whose newest item goes first: Lifo on both sides and max_times_sampled=1."""

    kind: Literal["stack"] = "stack"
    """Tells limiters apart in JSON."""
    max_items: int = Field(ge=1)
    """Unsampled items at which writers wait; the table's own max_items must not be less."""

    @property
    def samples_per_insert(self) -> float:
        return 1.0

    @property
    def min_items(self) -> int:
        return 1

    @property
    def min_diff(self) -> float:
        return 0.0

    @property
    def max_diff(self) -> float:
        return float(self.max_items)


class RateLimit(Frozen):
    """The four numbers of all limiters, set one by one. No limit: `-inf`, `inf`; in JSON as text."""

    kind: Literal["rate_limit"] = "rate_limit"
    """Tells limiters apart in JSON."""
    samples_per_insert: float
    """How often an item is sampled on average."""
    min_items: int = Field(ge=1)
    """Items needed before the first sample; up to here inserts never wait."""
    min_diff: Bound
    """Samplers wait where inserted * samples_per_insert - sampled would fall below this."""
    max_diff: Bound
    """Writers wait where inserted * samples_per_insert - sampled would rise above this."""

    @model_validator(mode="after")
    def _rate_can_work(self) -> RateLimit:
        _require_ratio(self.samples_per_insert)
        _require_interval(self)
        return self


Limiter: TypeAlias = Annotated[MinSize | SampleToInsertRatio | Queue | Stack | RateLimit, Field(discriminator="kind")]


def _require_ratio(ratio: float) -> None:
    if not (ratio > 0 and math.isfinite(ratio)):
        raise ConfigError(f"samples_per_insert must be > 0, got {ratio:g}; for no ratio use MinSize(min_items=...)")


def _require_interval(rule: SampleToInsertRatio | RateLimit) -> None:
    """Reverb's three conditions; where one fails, both sides end up waiting for each other."""
    ratio, least, most = rule.samples_per_insert, rule.min_diff, rule.max_diff
    middle, width = ratio * rule.min_items, 2 * max(1.0, ratio)
    if math.isnan(least) or math.isnan(most):
        raise ConfigError(f"min_diff and max_diff must be numbers, got {least:g} and {most:g}; for no limit use -inf and inf")
    if not least <= middle:
        raise ConfigError(
            f"min_diff <= samples_per_insert * min_items fails: {least:g} > {middle:g}; with min_items in the table nobody could "
            "sample yet, so lower min_diff or raise min_items"
        )
    if not most >= middle:
        raise ConfigError(
            f"max_diff >= samples_per_insert * min_items fails: {most:g} < {middle:g}; writers would have to wait before the first "
            "sample is allowed, so raise max_diff or lower min_items"
        )
    if not most - least >= width:
        raise ConfigError(
            f"max_diff - min_diff >= 2 * max(1, samples_per_insert) fails: {most:g} - {least:g} < {width:g}; both sides would wait "
            "for each other, so widen the interval"
        )
