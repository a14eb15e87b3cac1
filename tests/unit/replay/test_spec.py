"""Table specs: what can work, and what is refused with the inequality that fails."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.errors import ConfigError
from rollstream.replay import Fifo, MinSize, Prioritized, SampleToInsertRatio, TableSpec
from rollstream.spaces import Column, RowSpec

ROWS = [["observation", "<f4", [4]], ["reward", "<f4", []]]


def spec(**changes: Any) -> TableSpec:
    return TableSpec(**{"name": "replay", "max_items": 1000, "rows": ROWS, **changes})


def test_a_spec_survives_json() -> None:
    made = spec(
        sampler=Prioritized(exponent=0.5), limiter=SampleToInsertRatio(samples_per_insert=8, min_items=10, tolerance_items=100)
    )
    assert TableSpec.model_validate_json(made.model_dump_json()) == made


def test_rows_may_be_given_as_a_row_spec() -> None:
    rows = RowSpec((Column(name="observation", dtype="<f4", shape=(4,)), Column(name="reward", dtype="<f4")))
    assert spec(rows=rows) == spec()
    assert spec(rows=rows).row_spec.hash == rows.hash


@pytest.mark.parametrize("ratio", [-1.0, 0.0, float("nan"), float("inf")])
def test_a_ratio_must_be_positive_and_finite(ratio: float) -> None:
    with pytest.raises(ConfigError, match="samples_per_insert must be > 0, got"):
        SampleToInsertRatio(samples_per_insert=ratio, min_items=10, tolerance_items=5)


def test_a_tolerance_below_one_insert_is_refused_because_both_sides_would_wait() -> None:
    with pytest.raises(ConfigError, match=r"tolerance_items >= max\(1, samples_per_insert\) fails: 7 < 8"):
        SampleToInsertRatio(samples_per_insert=8, min_items=10, tolerance_items=7)


def test_min_items_above_max_items_is_refused() -> None:
    with pytest.raises(ConfigError, match="min_items <= max_items fails: 2000 > 1000"):
        spec(limiter=MinSize(min_items=2000))


def test_a_batch_that_the_tolerance_cannot_serve_is_refused() -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1, min_items=1000, tolerance_items=100)
    with pytest.raises(ConfigError, match=r"2 \* tolerance_items >= batch_items \+ samples_per_insert fails: 200 < 256 \+ 1"):
        spec(limiter=limiter, batch_items=256)
    assert spec(limiter=limiter, batch_items=199).batch_problem(199) == ""


def test_a_ratio_above_the_uses_of_an_item_is_refused() -> None:
    limiter = SampleToInsertRatio(samples_per_insert=4, min_items=10, tolerance_items=100)
    with pytest.raises(ConfigError, match="samples_per_insert <= max_times_sampled fails: 4 > 2"):
        spec(limiter=limiter, max_times_sampled=2)


def test_a_batch_above_min_items_is_refused_where_items_are_used_up_and_writers_may_wait() -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1, min_items=10, tolerance_items=100)
    with pytest.raises(ConfigError, match="batch_items <= min_items fails: 32 > 10"):
        spec(limiter=limiter, max_times_sampled=2, batch_items=32)


def test_a_batch_larger_than_all_uses_of_the_table_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"batch_items <= max_items \* max_times_sampled fails: 20 > 10 \* 1"):
        spec(max_items=10, max_times_sampled=1, batch_items=20)


def test_unknown_dtypes_and_objects_are_refused() -> None:
    with pytest.raises(ConfigError, match="rows: a column has a dtype that NumPy does not know"):
        spec(rows=[["observation", "floaty", []]])
    with pytest.raises(ConfigError, match="columns of Python objects cannot be stored"):
        spec(rows=[["observation", "O", []]])


def test_predicted_memory_counts_row_key_and_overhead_per_item() -> None:
    # 25 bytes of row and 16 of header round to 48; 59 of key and 8 of header to 80; 72 for the entry
    assert spec(remover=Fifo()).predicted_bytes("run-abc123.replay") == 1000 * (48 + 80 + 72)
    assert spec(chunk_rows=16).predicted_bytes("run-abc123.replay") == 63 * (448 + 80 + 72)
