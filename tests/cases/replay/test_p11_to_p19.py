"""What surprises users of other replay servers, done to ours: silent ends, restored limiters, odd values, memory kept for ever."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Any

import numpy as np
import psutil
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, SchemaMismatch, TableError
from rollstream.replay import Fifo, SampleDataset, SampleToInsertRatio, queue_table

CLOCK = SystemClock()
STEP = {"observation": np.zeros((1, 2), np.float32), "reward": np.zeros(1, np.float32)}


def test_p11_history_too_far_back_names_what_is_kept(cell: Any) -> None:
    made = cell.table()
    writer = made.writer(keep_steps=5)
    for _ in range(50):
        writer.append(STEP)
    with pytest.raises(
        TableError, match="asks for the row 10 back of environment 0, of which the newest 5 can be used: keep_steps"
    ):
        writer.create_item("replay", env=0, last=10)
    kept = writer.create_item("replay", env=0, last=5)
    writer.flush()
    assert made.client.get(kept).lengths.tolist() == [5]


@pytest.mark.parametrize("deadline_s", [0.0, 0.1])
def test_p12_a_timeout_is_an_error_and_never_a_silent_end(cell: Any, deadline_s: float) -> None:
    made = cell.table()
    with pytest.raises(DeadlineExceeded, match="a batch of 4 items did not come within .*waiting for min_items 1, have 0"):
        made.client.sample(batch_items=4, deadline_s=deadline_s)


def test_p12_a_dataset_raises_too(cell: Any) -> None:
    made = cell.table()
    dataset = SampleDataset(made.make_client, batch_items=4, deadline_s=0.1)
    with pytest.raises(DeadlineExceeded, match="a batch of 4 items did not come within"):
        list(dataset)


def test_p13_a_table_restored_under_a_ratio_can_be_sampled_at_once(cell: Any) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=4, tolerance_items=8.0)
    made = cell.table(limiter=limiter)
    made.insert(10)
    for _ in range(2):
        made.client.sample(batch_items=7)
    with pytest.raises(DeadlineExceeded, match="samplers are ahead of the ratio"):
        made.client.sample(batch_items=7, deadline_s=0.1)
    exported = made.client.export(rows_max_bytes=1 << 20)
    there = cell.nobody(limiter=limiter)
    assert there.client.restore(exported) == 10
    assert len(there.client.sample(batch_items=7, deadline_s=10.0)) == 7
    as_it_was = cell.nobody(limiter=limiter)
    assert as_it_was.client.restore(exported, limiter="keep") == 10
    with pytest.raises(DeadlineExceeded, match="samplers are ahead of the ratio"):
        as_it_was.client.sample(batch_items=7, deadline_s=0.1)


def test_p14_settings_given_with_a_restore_win(cell: Any) -> None:
    made = cell.table()
    made.insert(30)
    exported = made.client.export(rows_max_bytes=1 << 20)
    smaller = cell.nobody()
    assert smaller.client.restore(exported, changes={"max_items": 10, "max_times_sampled": 2}) == 10
    told = smaller.client.describe()
    assert (told["items"], told["spec"]["max_items"], told["spec"]["max_times_sampled"]) == (10, 10, 2)
    sample = smaller.client.sample(batch_items=20)
    assert sample.rows["observation"].shape == (20, 1, 2)
    assert sample.rows["observation"][:, 0, 0].min() == 20.0, "the oldest left, as the remover says"
    assert np.bincount(sample.rows["observation"][:, 0, 0].astype(int))[20:].tolist() == [2] * 10
    assert smaller.client.info()["items"] == 0


def test_p15_an_insert_that_nobody_makes_room_for_ends_at_its_deadline_and_names_both_sides(cell: Any) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=1, tolerance_items=2.0)
    made = cell.table(limiter=limiter, unread_entries=1)
    writer = made.writer()
    for _ in range(3):
        writer.append(STEP)
        writer.flush(deadline_s=10.0)
    writer.append(STEP)
    with pytest.raises(DeadlineExceeded) as raised:
        writer.flush(deadline_s=0.5)
    told = str(raised.value)
    assert re.search(rf"table {made.id} shard 0: writer \d+ waited 0.\d s for its rows to be admitted", told)
    assert "samplers must sample" in told
    assert "inserted 3, sampled 0" in told
    made.client.sample(batch_items=1)
    writer.flush(deadline_s=10.0)
    assert made.client.info()["inserted"] == 4


def test_p16_a_queue_asked_for_more_than_it_has_says_so_and_keeps_what_it_has(cell: Any) -> None:
    made = cell.nobody()
    spec = queue_table("replay", max_items=10, rows=made.spec.rows)
    made.client.create(spec)
    made.insert(3)
    with pytest.raises(DeadlineExceeded, match="a batch of 5 items did not come within .*items 3, inserted 3, sampled 0"):
        made.client.sample(batch_items=5, deadline_s=0.2)
    assert made.client.sample(batch_items=3).rows["observation"][:, 0, 0].tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(TableError, match=r"batch_items <= max_items \* max_times_sampled fails: 11 > 10 \* 1"):
        made.client.sample(batch_items=11)


VALUES: dict[str, np.ndarray] = {
    "<f2": np.array([[1.5, np.nan], [-np.inf, 6e-8]], np.float16),
    "<f8": np.array([[1e300, -0.0], [np.nan, np.inf]]),
    "<i8": np.array([[-(2**63), 2**63 - 1], [0, -1]], np.int64),
    "<u8": np.array([[2**64 - 1, 0], [1, 2**63]], np.uint64),
    "|b1": np.array([[True, False], [False, True]]),
    "<c8": np.array([[1 + 2j, -1j], [np.inf, 0]], np.complex64),
    "|S4": np.array([[b"a", b"abcd"], [b"", b"\xff\x01"]]),
}


@pytest.mark.parametrize("dtype", VALUES)
def test_p17_values_of_every_kind_come_back_bit_by_bit(cell: Any, dtype: str) -> None:
    made = cell.table(rows=[("value", dtype, (2,))], sampler=Fifo())
    writer = made.writer(environments=2)
    writer.append({"value": VALUES[dtype]})
    writer.flush()
    got = made.client.sample(batch_items=1).rows["value"], made.client.items(order="oldest")
    assert got[0].dtype == np.dtype(dtype)
    assert got[0][0, 0].tobytes() == VALUES[dtype][0].tobytes()
    assert made.client.get(np.array([item["key"] for item in got[1]], np.uint64)).rows["value"][1, 0].tobytes() == (
        VALUES[dtype][1].tobytes()
    )
    json.dumps(got[1], allow_nan=False)


def test_p17_arrays_that_are_not_contiguous_or_empty_are_stored_as_they_look(cell: Any) -> None:
    made = cell.table(rows=[("value", "<f4", (2, 3)), ("nothing", "<f4", (0,))])
    wide = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
    odd = wide.transpose(0, 2, 1)[:, ::3, ::-1][:, :, :3]
    assert not odd.flags.c_contiguous
    writer = made.writer(environments=2)
    writer.append({"value": odd, "nothing": np.zeros((2, 0), np.float32)})
    writer.flush()
    sample = made.client.get(np.array([item["key"] for item in made.client.items(order="oldest")], np.uint64))
    assert (sample.rows["value"][:, 0] == odd).all()
    assert sample.rows["nothing"].shape == (2, 1, 0)


@pytest.mark.parametrize("dtype", ["O", "<M8[s]", "<m8[ns]"])
def test_p17_what_cannot_be_stored_is_refused_by_the_column_s_name(cell: Any, dtype: str) -> None:
    with pytest.raises(ConfigError, match="rows: the column obs.when of .* cannot be stored; use numbers or fixed-size bytes"):
        cell.nobody(rows=[("obs.when", dtype, ())])
    writer = cell.table(rows=[("obs.when", "<i8", ())]).writer(environments=2)
    values = np.array([None, None], object) if dtype == "O" else np.zeros(2, dtype)
    with pytest.raises(SchemaMismatch, match="column obs.when: expected numbers of int64, got .* that do not fit without loss"):
        writer.append({"obs": {"when": values}})


def test_p18_nothing_listens_on_all_interfaces(cell: Any) -> None:
    cell.url()
    processes = [psutil.Process(cell.process.pid), psutil.Process(cell.server.pid)]
    listening = [
        each.laddr.ip for process in processes for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN
    ]
    assert listening == ["127.0.0.1"], "the shard's API; the server has a unix socket only"
    with urllib.request.urlopen(f"{cell.url()}/v1/tables", timeout=10) as reply:
        assert reply.status == 200


def test_p19_memory_is_given_back_after_a_reset(own_cell: Any, eventually: Any) -> None:
    made = own_cell.table(max_items=20_000, rows=[("observation", "<f4", (100,))])
    writer = made.writer()
    columns = {"observation": np.zeros((20_000, 100), np.float32)}

    def fill_and_reset() -> None:
        writer.insert(columns)
        writer.flush()
        assert made.client.reset() == 20_000

    before = own_cell.redis_bytes()
    writer.insert(columns)
    writer.flush()
    full = own_cell.redis_bytes()
    assert full - before > 20_000 * 400
    assert made.client.reset() == 20_000
    eventually(lambda: own_cell.redis_bytes() - before < (full - before) / 10)
    fill_and_reset()
    rss = own_cell.rss_bytes()
    for _ in range(8):
        fill_and_reset()
    assert own_cell.rss_bytes() < 1.1 * rss
    eventually(lambda: own_cell.redis_bytes() - before < (full - before) / 10)
    assert len(own_cell.store.client.keys("rs:*")) < 40
