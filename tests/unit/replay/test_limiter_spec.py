"""Limiters as settings: the four numbers that all have, what is refused with which inequality, and JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from rollstream.errors import ConfigError
from rollstream.replay.limiter_spec import Limiter, MinSize, Queue, RateLimit, SampleToInsertRatio, Stack

ADAPTER: TypeAdapter[Limiter] = TypeAdapter(Limiter)
INF = math.inf


@pytest.mark.parametrize(
    ("rule", "numbers"),
    [
        (MinSize(min_items=7), (1.0, 7, -INF, INF)),
        (SampleToInsertRatio(samples_per_insert=2.0, min_items=10, tolerance_items=6.0), (2.0, 10, 14.0, 26.0)),
        (SampleToInsertRatio(samples_per_insert=2.0, min_items=10, min_diff=5.0, max_diff=90.0), (2.0, 10, 5.0, 90.0)),
        (SampleToInsertRatio(samples_per_insert=2.0, min_items=10, min_diff=5.0), (2.0, 10, 5.0, INF)),
        (Queue(max_items=4), (1.0, 1, 0.0, 4.0)),
        (Stack(max_items=1), (1.0, 1, 0.0, 1.0)),
        (RateLimit(samples_per_insert=0.5, min_items=3, min_diff=-INF, max_diff=9.0), (0.5, 3, -INF, 9.0)),
    ],
)
def test_all_kinds_say_the_same_four_numbers_also_after_json(rule: Limiter, numbers: tuple[float, int, float, float]) -> None:
    for one in (rule, ADAPTER.validate_json(ADAPTER.dump_json(rule)), ADAPTER.validate_python(rule.model_dump(mode="json"))):
        assert (one.samples_per_insert, one.min_items, one.min_diff, one.max_diff) == numbers
        assert one == rule
    json.dumps(rule.model_dump(mode="json"), allow_nan=False)


def test_a_tolerance_is_told_without_the_interval_that_follows() -> None:
    told = SampleToInsertRatio(samples_per_insert=2.0, min_items=10, tolerance_items=6.0).model_dump()
    assert set(told) == {"kind", "samples_per_insert", "min_items", "tolerance_items"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples_per_insert": 0.0}, "samples_per_insert must be > 0, got 0; for no ratio use MinSize"),
        ({"samples_per_insert": -1.0}, "samples_per_insert must be > 0, got -1"),
        ({"samples_per_insert": INF}, "samples_per_insert must be > 0, got inf"),
        ({"samples_per_insert": math.nan}, "samples_per_insert must be > 0, got nan"),
        ({"min_diff": 20.5}, r"min_diff <= samples_per_insert \* min_items fails: 20.5 > 20"),
        ({"max_diff": 19.5}, r"max_diff >= samples_per_insert \* min_items fails: 19.5 < 20"),
        ({"min_diff": 17.0, "max_diff": 20.5}, r"max_diff - min_diff >= 2 \* max\(1, samples_per_insert\) fails: 20.5 - 17 < 4"),
        ({"min_diff": math.nan}, "min_diff and max_diff must be numbers, got nan and 90"),
    ],
)
@pytest.mark.parametrize("kind", [SampleToInsertRatio, RateLimit])
def test_intervals_in_which_both_sides_would_wait_are_refused(kind: Any, settings: dict[str, float], message: str) -> None:
    fine = {"samples_per_insert": 2.0, "min_items": 10, "min_diff": 0.0, "max_diff": 90.0}
    kind(**fine)
    with pytest.raises(ConfigError, match=message):
        kind(**{**fine, **settings})


def test_intervals_at_the_border_are_accepted() -> None:
    RateLimit(samples_per_insert=2.0, min_items=10, min_diff=20.0, max_diff=24.0)
    RateLimit(samples_per_insert=2.0, min_items=10, min_diff=16.0, max_diff=20.0)
    RateLimit(samples_per_insert=0.25, min_items=4, min_diff=-1.0, max_diff=1.0)
    SampleToInsertRatio(samples_per_insert=0.25, min_items=4, tolerance_items=1.0)


def test_a_tolerance_below_one_insert_or_one_sample_is_refused() -> None:
    for ratio, tolerance, least in ((0.25, 0.5, "1"), (8.0, 7.0, "8"), (2.0, math.inf, "2")):
        message = rf"tolerance_items >= max\(1, samples_per_insert\) fails: {tolerance:g} < {least}"
        with pytest.raises(ConfigError, match=message):
            SampleToInsertRatio(samples_per_insert=ratio, min_items=10, tolerance_items=tolerance)


def test_a_ratio_needs_a_tolerance_or_an_interval_and_not_both() -> None:
    with pytest.raises(ConfigError, match="tolerance_items is missing; give it, or the interval as min_diff and max_diff"):
        SampleToInsertRatio(samples_per_insert=2.0, min_items=10)
    with pytest.raises(ConfigError, match="tolerance_items 6 and the interval min_diff 0, max_diff inf exclude each other"):
        SampleToInsertRatio(samples_per_insert=2.0, min_items=10, tolerance_items=6.0, min_diff=0.0)


@pytest.mark.parametrize(
    "settings", [{"kind": "queue", "max_items": 0}, {"kind": "stack", "max_items": 0}, {"kind": "min_size", "min_items": 0}]
)
def test_sizes_start_at_one(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        ADAPTER.validate_python(settings)
