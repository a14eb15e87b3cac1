"""Table specs: what can work, and what is refused with the inequality that fails."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.errors import ConfigError
from rollstream.replay.limiter_spec import MinSize, Queue, SampleToInsertRatio, Stack
from rollstream.replay.presets import queue_table, stack_table
from rollstream.replay.selector_spec import Fifo, MaxHeap, Mixture, Prioritized, Uniform
from rollstream.replay.spec import TableSpec
from rollstream.replay.table_memory import chunk_memory_bytes, stored_bytes
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
    with pytest.raises(ConfigError, match="rows: the column .* has a dtype that NumPy does not know"):
        spec(rows=[["observation", "floaty", []]])
    with pytest.raises(ConfigError, match="rows: the column .* of object cannot be stored; use numbers or fixed-size bytes"):
        spec(rows=[["observation", "O", []]])


def test_predicted_memory_counts_rows_log_and_index() -> None:
    made = spec(remover=Fifo(), max_items=200_000)
    rows, log = 200_000 * made.chunk_memory_bytes("run-abc123.replay"), 100_000 * 24 + 200_000 * 20
    assert made.predicted_bytes("run-abc123.replay") == rows + 3 * (rows // 32) + log
    by_sixteen, small_log = spec(chunk_rows=16), 50_000 * 24 + 1000 * 20
    assert by_sixteen.predicted_bytes("x.replay") == 63 * by_sixteen.chunk_memory_bytes("x.replay") + (3 << 20) + small_log
    assert spec(rows_of="other").predicted_bytes("x.replay") == small_log
    assert spec(max_bytes=100_000).predicted_bytes("x.replay") == 100_000 + (3 << 20) + small_log


def test_predicted_memory_of_the_index_depends_on_its_selectors() -> None:
    made = spec(remover=Fifo())
    item = 51 + 4 + 6 + 102  # columns, free slot, key map, a snapshot being made
    assert made.predicted_index_bytes() == 1000 * (item + 1 + 9 + 20)
    assert spec(shards=2).predicted_index_bytes() == 2 * 500 * (item + 1 + 9 + 20)
    assert spec(chunk_rows=16).predicted_index_bytes() == 1000 * (item + 1 + 9) + 63 * 20
    assert spec(remover=Uniform(), max_times_sampled=3).predicted_index_bytes() == 1000 * (item - 6 + 32 + 4 + 1 + 1 + 20)


def test_a_chunk_needs_its_value_key_and_entry_as_the_allocator_rounds_them() -> None:
    # 25 bytes of row and 16 of header round to 48
    assert stored_bytes(25) == 48
    assert stored_bytes(405) == 448
    assert chunk_memory_bytes("x.replay", 405) - chunk_memory_bytes("x.replay", 25) == 400


def test_limits_are_shared_out_over_shards() -> None:
    made = spec(shards=3, max_bytes=1_000_000)
    assert (made.items_per_shard, made.bytes_per_shard) == (334, 333_334)
    assert spec().bytes_per_shard is None


def test_a_sampler_that_names_one_item_of_the_whole_table_needs_one_shard() -> None:
    for sampler in (Fifo(), Mixture(parts=((Uniform(), 1.0), (MaxHeap(), 1.0)))):
        with pytest.raises(ConfigError, match=f"shards == 1 fails: 2; the sampler {sampler.kind} names one item"):
            spec(shards=2, sampler=sampler)
        assert spec(shards=2, remover=sampler).shards == 2


def test_max_bytes_holds_at_least_a_chunk_for_each_shard() -> None:
    with pytest.raises(ConfigError, match=r"max_bytes must be >= \d+, one chunk for each shard, got 10"):
        spec(max_bytes=10)


def test_views_and_stacks_name_columns_of_the_rows() -> None:
    with pytest.raises(ConfigError, match="view and stack name the column 'pixels', the rows have: flags, version, observation"):
        spec(stack={"pixels": 4})
    with pytest.raises(ConfigError, match="stack of observation must be between 1 and 256 frames, got 0"):
        spec(stack={"observation": 0})
    assert spec(stack={"observation": 4}).stack == {"observation": 4}


def test_a_table_cannot_share_the_rows_of_itself() -> None:
    with pytest.raises(ConfigError, match="rows_of names the table replay itself"):
        spec(rows_of="replay")


def test_auto_stores_large_rows_with_frames_compressed_and_others_raw() -> None:
    assert spec().resolved_encoding == "raw"
    assert spec(rows=[["observation", "|u1", [84, 84]]]).resolved_encoding == "zstd"
    assert spec(rows=[["observation", "<f4", [84, 84]]]).resolved_encoding == "raw"
    assert spec(encoding="zstd").resolved_encoding == "zstd"


def test_queues_and_stacks_give_each_item_once() -> None:
    queue, stack = (make("moves", max_items=5, rows=ROWS) for make in (queue_table, stack_table))
    assert (queue.sampler.kind, queue.max_times_sampled, queue.limiter.max_diff) == ("fifo", 1, 5.0)
    assert (stack.sampler.kind, stack.limiter.kind) == ("lifo", "stack")
    assert queue.batch_problem(5) == ""
    assert queue.batch_problem(6) == "batch_items <= max_items * max_times_sampled fails: 6 > 5 * 1; " + (
        "the table never holds that many uses, so sample smaller batches"
    )
    with pytest.raises(ConfigError, match="max_items of the queue <= max_items fails: 9 > 5"):
        spec(max_items=5, limiter=Queue(max_items=9))
    few = spec(max_items=50, limiter=Stack(max_items=9))
    assert few.batch_problem(10).startswith("batch_items <= max_items of the stack fails: 10 > 9; it never holds so many")
