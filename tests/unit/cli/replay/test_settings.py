"""Changes of a table as words on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.errors import ConfigError
from rollstream_cli.replay.settings import changed_fields

PRESENT = {
    "max_items": 100,
    "sampler": {"kind": "prioritized", "exponent": 0.6},
    "limiter": {"kind": "sample_to_insert_ratio", "samples_per_insert": 8.0, "min_items": 10, "tolerance_items": 20.0},
}


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        (["max_items=1000"], {"max_items": 1000}),
        (["sampler=uniform"], {"sampler": {"kind": "uniform"}}),
        (["sampler.exponent=1e-1"], {"sampler": {"kind": "prioritized", "exponent": 0.1}}),
        (["limiter.kind=min_size", "limiter.min_items=5"], {"limiter": {"kind": "min_size", "min_items": 5}}),
        (["sampler=recency", "sampler.half_life=50"], {"sampler": {"kind": "recency", "half_life": 50}}),
        (
            ["limiter.samples_per_insert=4", "limiter.min_items=20"],
            {"limiter": {**PRESENT["limiter"], "samples_per_insert": 4, "min_items": 20}},  # type: ignore[dict-item]
        ),
    ],
)
def test_changes_give_whole_fields(changes: list[str], fields: dict[str, Any]) -> None:
    assert changed_fields(changes, present=PRESENT) == fields
    assert PRESENT["sampler"] == {"kind": "prioritized", "exponent": 0.6}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("max_items", "a change of a table is KEY=VALUE, such as max_items=1000, got 'max_items'"),
        ("=5", "a change of a table is KEY=VALUE"),
        ("max_item=5", "a table has no setting 'max_item'; did you mean 'max_items'"),
        ("max_items.x=5", "max_items of a table has no settings inside, got 'max_items.x'"),
    ],
)
def test_what_is_no_change_is_refused(change: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        changed_fields([change], present=PRESENT)
