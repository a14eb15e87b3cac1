"""What a person sees of tables, items and priorities."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from rollstream_cli.replay import render
from rollstream_cli.replay.tables import ShardSays
from rollstream_cli.replay.totals import TableTotals, totals

SPEC = {
    "max_items": 1000,
    "sampler": {"kind": "prioritized", "exponent": 0.6},
    "remover": {"kind": "fifo"},
    "limiter": {"kind": "min_size", "min_items": 1},
    "rows": [["observation", "<f4", [4]], ["reward", "<f4", []]],
}
ITEM = {
    "key": 1 << 60,
    "priority": 2.5,
    "times_sampled": 3,
    "writer": 7,
    "environment": 1,
    "start_row": 90,
    "rows": [{"flags": 1, "reward": 0.25}, {"flags": 10, "reward": {"first": [1.0, 2.0], "shape": [84, 84]}}],
}


def text(shown: Any) -> str:
    output = io.StringIO()
    Console(file=output, width=200, highlight=False).print(shown)
    return output.getvalue()


def says(shard: int = 0, **info: Any) -> ShardSays:
    counts = {"items": 500, "inserted": 1_500, "sampled": 3_000, "bytes": 1_234_567}
    return ShardSays(shard=shard, member=f"replay-{shard}", info={**counts, "spec": SPEC, **info})


def table(*shards: ShardSays) -> TableTotals:
    return totals("run-a1.replay", shards or [says()])


def test_a_list_has_a_line_for_each_table_and_who_waits_below() -> None:
    shown = text(render.table_list([table(says(writers_wait_for="samplers must sample"))]))
    assert "run-a1.replay  " in shown
    for word in ("500", "1,000", "1,500", "3,000", "2.00", "1.2 MB"):
        assert word in shown
    assert "run-a1.replay: writers wait: samplers must sample" in shown


def test_a_frame_has_rates_since_the_look_before() -> None:
    now = table(says(inserted=2_500, entries_waiting=4))
    shown = text(render.frame([now], {"run-a1.replay": table()}, over_s=2.0))
    for word in ("in/s", "500", "50%"):
        assert word in shown
    assert text(render.frame([totals("t", [])], {}, over_s=0.0)).count("-") == 1, "how full a table is that nobody serves"


def test_a_description_has_settings_numbers_and_that_nobody_waits() -> None:
    shown = text(render.described(table(), [says()]))
    for words in (
        "sampler: prioritized (exponent 0.6)",
        "remover: fifo",
        "columns: observation <f4[4], reward <f4[]",
        "samples per insert: 2.000",
        "bytes: 1,234,567 (1.2 MB)",
        "nobody waits",
    ):
        assert words in shown


def test_a_description_of_several_shards_says_what_each_holds() -> None:
    away = ShardSays(shard=1, member="", info=None, problem="it did not answer")
    shown = text(render.described(table(says(), away), [says(), away]))
    assert "shard 0 (replay-0): 500 items, inserted 1,500, sampled 3,000" in shown
    assert "shard 1 (nobody): it did not answer" in shown


def test_a_description_tells_how_the_limiter_stands_and_who_waits_for_how_long() -> None:
    info = {
        "diff": 12.0,
        "min_diff": -3.0,
        "max_diff": None,
        "batch_items": 64,
        "can_insert_one": True,
        "can_sample_batch": False,
        "writers_waiting": [{"writer": 5, "waited_s": 3.25}],
        "samplers_waiting": [{"batch_items": 64, "waited_s": 1.0, "deadline_s": 10.0}],
    }
    shown = text(render.described(table(), [says()], [ShardSays(shard=0, member="replay-0", info=info)]))
    assert "ahead by 12 samples (from -3 to unbounded); inserts may go on, samples of 64 must wait" in shown
    assert "writer 5 has been waiting 3.2 s" in shown
    assert "a sampler of 64 items has been waiting 1.0 of 10 s" in shown


def test_items_are_listed_with_keys_that_can_be_copied() -> None:
    shown = text(render.item_list([ITEM, {**ITEM, "rows": None}]))
    assert str(1 << 60) in shown
    assert "gone" in shown
    assert text(render.item_list([])) == "no items\n"


def test_an_item_shows_its_rows_and_cuts_long_values() -> None:
    shown = text(render.item(ITEM))
    assert "start row: 90" in shown
    assert f"key: {1 << 60}" in shown, "as it can be copied"
    assert "[1 2 ...] [84, 84]" in shown
    assert "its rows are gone from Redis" in text(render.item({**ITEM, "rows": None}))


def test_a_histogram_has_bars_in_proportion_and_names_the_zeros() -> None:
    info = {"items": 7, "zeros": 2, "min": 0.0, "max": 100.0, "mean": 20.5, "edges": [1.0, 10.0, 100.0], "counts": [4, 1]}
    shown = text(render.histogram(ShardSays(shard=0, member="replay-0", info=info), alone=True)).splitlines()
    assert [line.count("█") for line in shown] == [20, 40, 10, 0]
    assert "items 7, min 0, max 100, mean 20.5" in shown[3]


def test_histograms_of_several_shards_are_told_apart() -> None:
    away = ShardSays(shard=1, member="", info=None, problem="it did not answer")
    assert text(render.histogram(away, alone=False)) == "shard 1: it did not answer\n"
    empty = {"items": 0, "zeros": 0, "min": None, "max": None, "mean": None, "edges": [], "counts": []}
    assert text(render.histogram(ShardSays(shard=0, member="", info=empty), alone=False)).split("\n")[:2] == [
        "shard 0",
        "no items",
    ]


@pytest.mark.parametrize(
    ("count_bytes", "shown"), [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (2.5e9, "2.5 GB"), (7e12, "7000.0 GB")]
)
def test_sizes(count_bytes: float, shown: str) -> None:
    assert render.size(count_bytes) == shown
