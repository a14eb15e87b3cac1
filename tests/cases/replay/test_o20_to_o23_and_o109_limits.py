"""Limiters that tell who waits for whom, deadlines on every wait, changes to living tables, and a look inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, SchemaMismatch
from rollstream.replay import Prioritized, SampleToInsertRatio, Table, TableSpec
from rollstream.replay.packed import pack, unpack
from rollstream.replay.table_state import load_state, table_state


def test_o20_an_insert_that_the_ratio_forbids_waits_with_a_deadline_and_is_visible(service: Any) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=4.0, min_items=8, tolerance_items=16.0)
    service.create(limiter=limiter, unread_entries=1)
    writer = service.writer()
    writer.append(service.rollout(20))
    with pytest.raises(DeadlineExceeded, match="writers are ahead of the ratio.*samplers must sample"):
        writer.append(service.rollout(20), deadline_s=2.0)
    told = service.client.describe()
    assert told["items"] == 12, "8 to begin with, and 16 / 4 within the tolerance"
    assert told["entries_waiting"] == 1
    assert "samplers must sample" in told["writers_wait_for"]


def test_o21_a_limiter_under_which_both_sides_would_wait_is_refused_with_the_inequality(service: Any) -> None:
    limiter = {"kind": "sample_to_insert_ratio", "samples_per_insert": 1.0, "min_items": 1000, "tolerance_items": 100.0}
    document = {**service.spec.model_dump(mode="json"), "limiter": limiter, "batch_items": 256}
    with pytest.raises(ConfigError, match=r"2 \* tolerance_items >= batch_items \+ samples_per_insert fails: 200 < 256 \+ 1"):
        service.client._link.request_json("PUT", "/v1/tables/run-abc123.replay", document, deadline_s=10.0)


@pytest.mark.parametrize("spi", [0.25, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("batch", [1, 5, 32])
def test_o21_no_accepted_limiter_can_leave_both_sides_waiting(table: Any, insert: Any, spi: float, batch: int) -> None:
    tolerance = max(1.0, spi, (batch + spi) / 2)
    limiter = SampleToInsertRatio(samples_per_insert=spi, min_items=10, tolerance_items=tolerance)
    index = table(limiter=limiter, batch_items=batch, max_items=12)
    for _ in range(200):
        can_insert, can_sample = index.limiter.can_insert(1, size=index.size), index.can_sample(batch)
        assert can_insert or can_sample
        if can_sample:
            index.sample(batch)
        else:
            insert(index, [1.0])


def test_o22_the_end_of_an_episode_never_hangs(service: Any) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=2, tolerance_items=1.0)
    service.create(limiter=limiter, max_items=2, unread_entries=1)
    writer, clock = service.writer(), SystemClock()
    writer.append(service.rollout(4))
    before_s = clock.monotonic_s()
    with pytest.raises(DeadlineExceeded) as raised:
        writer.flush(deadline_s=2.0)
    assert clock.monotonic_s() - before_s < 10.0
    for word in ("table run-abc123.replay", "max_diff", "inserted 3", "items 2", "sampled 0"):
        assert word in str(raised.value)
    writer.close()


def test_o23_settings_may_change_on_restore_but_rows_may_not(table: Any, insert: Any) -> None:
    index = table(max_items=100)
    insert(index, list(np.linspace(1.0, 2.0, 100)))
    state = table_state(index)
    buffer = pack(state.facts, state.arrays)
    changed = index.spec.model_copy(update={"max_items": 10, "max_times_sampled": 3, "sampler": Prioritized(exponent=0.3)})
    restored = Table(changed, seed=3)
    load_state(restored, unpack(buffer, what="snapshot"))
    assert restored.size == 10
    assert restored.items.number[restored.items.live()].tolist() == list(range(90, 100)), "by the remover: the oldest went"
    assert len(restored.sample(30).keys) == 30
    assert restored.size == 0
    other = TableSpec.model_validate({**index.spec.model_dump(), "rows": [["observation", "<f8", [2]], ["reward", "<f4", []]]})
    with pytest.raises(SchemaMismatch, match="the table has observation <f4.* where the change has observation <f8"):
        index.apply(other)


def test_o109_the_items_of_highest_priority_can_be_looked_at(service: Any) -> None:
    service.create(sampler=Prioritized())
    writer = service.writer()
    writer.append(service.rollout(16))
    writer.flush(deadline_s=10)
    item_keys = np.array([item["key"] for item in service.client.items(order="oldest", limit=100)], np.uint64)
    service.client.update_priorities(item_keys, np.arange(len(item_keys), dtype=np.float64))
    clock = SystemClock()
    end_s = clock.monotonic_s() + 20.0
    while service.client.info()["priorities_updated"] == 0:
        assert clock.monotonic_s() < end_s
        clock.sleep(0.02)
    top = service.client.items(order="priority", limit=3)
    assert [item["priority"] for item in top] == [31.0, 30.0, 29.0]
    assert top[0]["key"] == int(item_keys[31])
    assert top[0]["rows"][0]["observation"][0] == top[0]["start_row"]
