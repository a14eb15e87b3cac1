"""What shards say, added up."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream_cli.replay.tables import ShardSays
from rollstream_cli.replay.totals import rates, totals


def says(shard: int = 0, **info: Any) -> ShardSays:
    spec = {"max_items": 1000, "limiter": {"kind": "min_size"}}
    return ShardSays(
        shard=shard, member=f"replay-{shard}", info={"items": 10, "inserted": 20, "sampled": 30, "spec": spec, **info}
    )


def away(shard: int = 1) -> ShardSays:
    return ShardSays(shard=shard, member="replay-1", info=None, problem="it did not answer")


def test_shards_are_added_up_and_limits_are_those_of_the_whole_table() -> None:
    found = totals("run.replay", [says(0), says(1, items=5, bytes=7)])
    assert (found.counts["items"], found.counts["inserted"], found.counts["bytes"]) == (15, 40, 7)
    assert (found.max_items, found.shards, found.ratio) == (1000, 2, 1.5)


def test_a_shard_that_is_away_is_told_and_the_others_count() -> None:
    found = totals("run.replay", [says(0), away()])
    assert found.counts["items"] == 10
    assert found.problems == ("shard 1: it did not answer",)
    assert found.to_json()["problems"] == ["shard 1: it did not answer"]


def test_an_empty_table_has_the_ratio_0() -> None:
    assert totals("run.replay", [says(inserted=0)]).ratio == 0.0


@pytest.mark.parametrize(
    ("info", "waits"),
    [
        ({"writers_wait_for": "", "samplers_waiting": 0, "samplers_wait_for": "min_items 10"}, ()),
        ({"writers_wait_for": "samplers must sample"}, ("writers wait: samplers must sample",)),
        ({"samplers_waiting": 1, "samplers_wait_for": "min_items 10"}, ("1 sampler waits: min_items 10",)),
        ({"samplers_waiting": 2}, ("2 samplers wait: their batch is larger than what may be sampled now",)),
    ],
)
def test_who_waits_is_told_for_those_who_do(info: dict[str, Any], waits: tuple[str, ...]) -> None:
    assert totals("run.replay", [says(**info)]).waits == waits


def test_with_several_shards_the_one_that_makes_wait_is_named() -> None:
    found = totals("run.replay", [says(0), says(1, writers_wait_for="samplers must sample")])
    assert found.waits == ("shard 1: writers wait: samplers must sample",)


def test_rates_are_differences_over_time_and_never_below_0() -> None:
    before, now = totals("t", [says()]), totals("t", [says(inserted=120, sampled=25)])
    assert rates(now, before, over_s=2.0) == (50.0, 0.0)
    assert rates(now, None, over_s=2.0) == (0.0, 0.0)
    assert rates(now, before, over_s=0.0) == (0.0, 0.0)
