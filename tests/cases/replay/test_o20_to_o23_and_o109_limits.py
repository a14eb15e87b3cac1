"""Limiters that tell who waits for whom, deadlines on every wait, changes to living tables, and a look inside."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import numpy as np
import pytest

from rollstream.errors import DeadlineExceeded, SchemaMismatch
from rollstream.replay import Prioritized, SampleToInsertRatio, TableGroup, TableSpec
from rollstream.replay.group_state import capture, load_snapshot
from rollstream.replay.packed import pack, unpack


def steps(count: int) -> dict[str, Any]:
    """Steps of two environments, one after another."""
    return {"observation": np.zeros((2, 2), np.float32), "reward": np.full(2, float(count))}


def test_o20_an_insert_that_the_ratio_forbids_waits_with_a_deadline_and_is_visible(cell: Any) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=4.0, min_items=8, tolerance_items=16.0)
    made = cell.table(limiter=limiter, unread_entries=1)
    writer = made.writer(environments=2)
    for step in range(20):
        writer.append(steps(step))
    with pytest.raises(DeadlineExceeded, match="writers are ahead of the ratio.*samplers must sample"):
        writer.flush(deadline_s=1.0)
    told = made.client.describe()
    assert told["items"] == 12, "8 to begin with, and 16 / 4 within the tolerance"
    assert told["entries_waiting"] == 1
    assert "samplers must sample" in told["writers_wait_for"]


def test_o21_a_limiter_under_which_both_sides_would_wait_is_refused_with_the_inequality(cell: Any) -> None:
    limiter = {"kind": "sample_to_insert_ratio", "samples_per_insert": 1.0, "min_items": 1000, "tolerance_items": 100.0}
    document = {**cell.nobody().spec.model_dump(mode="json"), "limiter": limiter, "batch_items": 256}
    sent = urllib.request.Request(
        f"{cell.url()}/v1/tables/run-0a21.replay",
        json.dumps(document).encode(),
        {"Content-Type": "application/json"},
        method="PUT",
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(sent, timeout=10)
    assert refused.value.code == 422
    told = json.loads(refused.value.read())["detail"]
    assert "2 * tolerance_items >= batch_items + samples_per_insert fails: 200 < 256 + 1" in told


@pytest.mark.parametrize("spi", [0.25, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("batch", [1, 5, 32])
def test_o21_no_accepted_limiter_can_leave_both_sides_waiting(table: Any, insert: Any, spi: float, batch: int) -> None:
    tolerance = max(1.0, spi, (batch + spi) / 2)
    limiter = SampleToInsertRatio(samples_per_insert=spi, min_items=10, tolerance_items=tolerance)
    group = table(limiter=limiter, batch_items=batch, max_items=12)
    index = group.primary
    for _ in range(200):
        can_insert, can_sample = index.limiter.can_insert(1, size=index.size), index.can_sample(batch)
        assert can_insert or can_sample
        if can_sample:
            index.sample(batch)
        else:
            insert(group, [1.0])


def test_o22_the_end_of_an_episode_never_hangs(cell: Any) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=2, tolerance_items=1.0)
    made = cell.table(limiter=limiter, max_items=2, unread_entries=1)
    writer = made.writer(environments=2)
    for step in range(2):
        writer.append(steps(step))
        writer.end_episode()
    with pytest.raises(DeadlineExceeded) as raised:
        writer.flush(deadline_s=1.0)
    for word in (f"table {made.id}", "max_diff", "inserted 3", "items 2", "sampled 0"):
        assert word in str(raised.value)


def test_o23_settings_may_change_on_restore_but_rows_may_not(table: Any, insert: Any) -> None:
    group = table(max_items=100)
    insert(group, list(np.linspace(1.0, 2.0, 100)))
    state = capture(group).packed()
    buffer = pack(state.facts, state.arrays)
    spec = group.primary.spec
    changed = spec.model_copy(update={"max_items": 10, "max_times_sampled": 3, "sampler": Prioritized(exponent=0.3)})
    restored = TableGroup(changed, seed=3)
    load_snapshot(restored, unpack(buffer, what="snapshot"))
    index = restored.primary
    assert index.size == 10
    assert index.items.number[index.items.live()].tolist() == list(range(90, 100)), "by the remover: the oldest went"
    assert len(index.sample(30).keys) == 30
    assert index.size == 0
    other = TableSpec.model_validate({**spec.model_dump(), "rows": [["observation", "<f8", [2]], ["reward", "<f4", []]]})
    with pytest.raises(SchemaMismatch, match="the table has observation <f4.* where the change has observation <f8"):
        group.primary.apply(other)


def test_o109_the_items_of_highest_priority_can_be_looked_at(cell: Any, eventually: Any) -> None:
    made = cell.table(sampler=Prioritized())
    item_keys = made.insert(32)
    made.client.update_priorities(item_keys, np.arange(32.0))
    eventually(lambda: made.client.info()["priorities_updated"] == 32)
    top = made.client.items(order="priority", limit=3)
    assert [item["priority"] for item in top] == [31.0, 30.0, 29.0]
    assert top[0]["key"] == int(item_keys[31])
    assert top[0]["rows"][0]["observation"][0] == 31.0
