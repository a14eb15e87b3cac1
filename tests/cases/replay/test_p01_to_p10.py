"""What makes other replay servers hang or die, done to ours: bad priorities, absent servers, interrupts, restarts, wrong names."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import DeadlineExceeded, StoreUnavailable, TableError
from rollstream.replay import EachRow, Prioritized, SampleToInsertRatio, TableClient, TableWriter, TrajectoryWriter
from rollstream.replay.log import UpdateEntry, encode_update
from rollstream.spaces import Flag
from rollstream.store import Address, Store, keys

CLOCK = SystemClock()
LOG = logging.getLogger("rollstream.tests")


def rows(made: Any, count: int) -> np.ndarray:
    packed = np.zeros(count, made.spec.row_spec.dtype)
    packed["flags"][0] = Flag.FIRST
    packed["observation"][:, 0] = np.arange(count)
    return packed


def foreign_writer(made: Any) -> TableWriter:
    """A writer that checks no priorities, as one of another make would be."""
    return TableWriter(
        made.cell.store, made.cell.address, table_id=made.id, spec=made.spec, rule=EachRow(), environments=1, clock=CLOCK
    )


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0])
def test_p01_a_bad_priority_of_an_insert_is_refused_where_it_is_given(cell: Any, bad: float) -> None:
    made = cell.table(sampler=Prioritized())
    writer = made.writer(keep_steps=4)
    columns = {"observation": np.zeros((2, 2), np.float32), "reward": np.zeros(2, np.float32)}
    with pytest.raises(TableError, match="priorities must be finite and >= 0"):
        writer.insert(columns, priorities=[1.0, bad])
    writer.append({"observation": np.zeros((1, 2), np.float32), "reward": np.zeros(1, np.float32)})
    with pytest.raises(TableError, match="priorities must be finite and >= 0, got"):
        writer.create_item("replay", env=0, last=1, priority=bad)
    writer.insert(columns, priorities=[1.0, 2.0])
    writer.flush()
    assert set(made.client.sample(batch_items=16).priority.tolist()) <= {1.0, 2.0}


def test_p01_bad_priorities_that_reach_a_shard_are_counted_and_kill_nothing(cell: Any) -> None:
    made = cell.table(sampler=Prioritized())
    writer = foreign_writer(made)
    writer.append_rows(rows(made, 4), np.array([0, 4]), priority=np.array([2.0, -1.0, np.inf, -np.inf], np.float32))
    writer.flush(deadline_s=10)
    writer.append_rows(rows(made, 4), np.array([0, 4]), priority=np.ones(4, np.float32))
    writer.flush(deadline_s=10)
    told = made.client.describe()
    assert (told["items"], told["priorities_refused"], told["max_priority"]) == (8, 3, 2.0)
    assert set(made.client.sample(batch_items=64).priority.tolist()) == {1.0, 2.0}


def test_p02_p03_bad_updates_leave_the_items_as_they_were_and_are_counted(cell: Any, eventually: Any) -> None:
    made = cell.table(sampler=Prioritized())
    item_keys = made.insert(4, priorities=[1.0, 2.0, 3.0, 4.0])
    result = made.client.update_priorities(item_keys, np.array([-1.0, np.nan, np.inf, 5.0]))
    assert (result.sent, result.refused) == (1, 3)
    unchecked = UpdateEntry(keys=item_keys[:3], priority=np.array([-1.0, np.nan, np.inf], np.float32))
    cell.store.client.xadd(keys.table_log(made.id, 0), {b"u": encode_update(unchecked)})
    eventually(lambda: made.client.describe()["priorities_refused"] == 6)
    items = made.client.items(order="oldest")
    assert [item["priority"] for item in items] == [1.0, 2.0, 3.0, 5.0]
    assert len(made.client.sample(batch_items=8)) == 8


CALLS: dict[str, Callable[[Any, TableClient], Any]] = {
    "create": lambda made, client: client.create(made.spec, deadline_s=0.2),
    "sample": lambda made, client: client.sample(batch_items=4, deadline_s=0.2),
    "get": lambda made, client: client.get(np.array([1], np.uint64), deadline_s=0.2),
    "known": lambda made, client: client.known(np.array([1], np.uint64), deadline_s=0.2),
    "describe": lambda made, client: client.describe(deadline_s=0.2),
    "info": lambda made, client: client.info(deadline_s=0.2),
    "items": lambda made, client: client.items(deadline_s=0.2),
    "change": lambda made, client: client.change({"max_items": 5}, deadline_s=0.2),
    "reset": lambda made, client: client.reset(deadline_s=0.2),
    "drop": lambda made, client: client.drop(deadline_s=0.2),
    "export": lambda made, client: client.export(rows_max_bytes=1 << 20, deadline_s=0.2),
    "update_priorities": lambda made, client: client.update_priorities(np.array([1], np.uint64), np.ones(1), deadline_s=0.2),
    "delete_items": lambda made, client: client.delete_items(np.array([1], np.uint64), deadline_s=0.2),
}
THROUGH_REDIS = ("update_priorities", "delete_items")
"""Calls that need no shard: they write to its log."""


@pytest.mark.parametrize("call", CALLS)
def test_p04_p05_without_a_server_every_call_ends_at_its_deadline_and_names_the_address(cell: Any, call: str) -> None:
    path = cell.address.path + ".nobody"
    nobody = Address(transport="unix", path=path)
    store = Store(nobody, clock=CLOCK, deadline_s=0.2)
    client = TableClient(store, nobody, table_id="run-0a04.replay", clock=CLOCK)
    began_s = CLOCK.monotonic_s()
    with pytest.raises((DeadlineExceeded, StoreUnavailable)) as raised:
        CALLS[call](cell.nobody(), client)
    assert CLOCK.monotonic_s() - began_s < 20.0, "its deadline, not that of something inside"
    assert path in str(raised.value)
    client.close()
    store.close()


def test_p04_without_a_server_a_writer_ends_at_its_deadline_and_names_the_address(cell: Any) -> None:
    path = cell.address.path + ".nobody"
    nobody = Address(transport="unix", path=path)
    store = Store(nobody, clock=CLOCK, deadline_s=0.2)
    with pytest.raises(StoreUnavailable, match=path):
        TrajectoryWriter(store, nobody, experiment="run-0a04", tables={"replay": EachRow()}, environments=1, clock=CLOCK)
    made = cell.nobody()
    writer = TableWriter(
        store, nobody, table_id=made.id, spec=made.spec, rule=EachRow(), environments=1, clock=CLOCK, writer_id=1, deadline_s=0.2
    )
    with pytest.raises((DeadlineExceeded, StoreUnavailable), match=path):
        writer.append_rows(rows(made, 4), np.array([0, 4]))
    store.close()


@pytest.fixture
def shardless(own_cell: Any) -> Any:
    """A cell whose replay process was killed a while ago."""
    made = own_cell.table(unread_entries=1)
    made.insert(8)
    own_cell.kill()
    return made


def test_p04_without_a_shard_every_call_ends_at_its_deadline_and_names_the_shard(shardless: Any) -> None:
    client = shardless.make_client()
    for name, call in CALLS.items():
        if name in THROUGH_REDIS:
            call(shardless, client)
            continue
        with pytest.raises(DeadlineExceeded, match="replay shard 0 did not serve .* within") as raised:
            call(shardless, client)
        assert "0.2 s" in str(raised.value) or "0.3 s" in str(raised.value), name
    client.close()
    writer = shardless.writer()
    step = {"observation": np.zeros((1, 2), np.float32), "reward": np.zeros(1, np.float32)}
    writer.append(step)
    with pytest.raises(DeadlineExceeded, match="shard 0: writer .* waited .*the replay shard to read its log; is it running"):
        writer.flush(deadline_s=0.2)
    shardless.cell.start()
    writer.flush(deadline_s=30.0)
    assert len(shardless.client.sample(batch_items=16)) == 16
    assert shardless.client.info()["items"] == 9


BLOCKED = """
import sys
import numpy as np
from rollstream.clock import SystemClock
from rollstream.replay import EachRow, TableClient, TrajectoryWriter
from rollstream.store import Store, parse_address

address, experiment, what = parse_address(sys.argv[1]), sys.argv[2], sys.argv[3]
store = Store(address, clock=SystemClock())
step = {"observation": np.zeros((1, 2), np.float32), "reward": np.zeros(1, np.float32)}
print("blocked", flush=True)
if what == "sample":
    TableClient(store, address, table_id=experiment + ".replay", clock=SystemClock()).sample(batch_items=2, deadline_s=90.0)
writer = TrajectoryWriter(
    store, address, experiment=experiment, tables={"replay": EachRow()}, environments=1, clock=SystemClock(), flush_steps=2,
    deadline_s=90.0,
)
while what == "append":
    writer.append(step)
writer.append(step)
for _ in range(8):
    writer.append(step)
writer.flush(deadline_s=90.0)
"""


@pytest.mark.parametrize("what", ["sample", "append", "flush"])
def test_p06_ctrl_c_ends_a_wait(cell: Any, tmp_path: Path, eventually: Any, what: str) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=4, tolerance_items=2.0)
    made = cell.table(limiter=limiter, unread_entries=2)
    script = tmp_path / "blocked.py"
    script.write_text(BLOCKED)
    process = subprocess.Popen(
        [sys.executable, str(script), str(cell.address), made.experiment, what],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "blocked\n"
    wanted = "samplers_waiting" if what == "sample" else "entries_waiting"
    eventually(lambda: made.client.describe()[wanted])
    CLOCK.sleep(0.3)
    process.send_signal(signal.SIGINT)
    began_s = CLOCK.monotonic_s()
    _, told = process.communicate(timeout=10)
    LOG.info("Ctrl-C in %s: %.3f s", what, CLOCK.monotonic_s() - began_s)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in told


def test_p07_a_server_that_stops_under_a_flush_is_told_and_nothing_is_lost(own_cell: Any) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=4, tolerance_items=2.0)
    made = own_cell.table(limiter=limiter)
    writer = made.writer()
    columns = {"observation": np.zeros((16, 2), np.float32), "reward": np.arange(16, dtype=np.float32)}
    written = writer.insert(columns)
    stopper = threading.Timer(0.3, own_cell.server.stop)
    stopper.start()
    began_s = CLOCK.monotonic_s()
    with pytest.raises((DeadlineExceeded, StoreUnavailable), match=own_cell.address.path):
        writer.flush(deadline_s=2.0)
    assert CLOCK.monotonic_s() - began_s < 30.0
    stopper.join()
    own_cell.server.start()
    made.client.change({"limiter": {"kind": "min_size", "min_items": 1}}, deadline_s=30.0)
    writer.flush(deadline_s=30.0)
    assert set(made.client.known(written.keys["replay"]).tolist()) == {True}
    assert made.client.info()["items"] == 16


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_p08_writer_and_client_go_on_after_the_server_restarts(own_cell: Any, how: signal.Signals) -> None:
    made = own_cell.table()
    item_keys = made.insert(64)
    writer = made.writer()
    step = {"observation": np.zeros((1, 2), np.float32), "reward": np.zeros(1, np.float32)}
    writer.append(step)
    writer.flush()
    made.client.sample(batch_items=16)
    CLOCK.sleep(1.5)  # longer than the server may keep what it was told from its file
    end(own_cell.server.pid, how)
    own_cell.server.start()
    began_s = CLOCK.monotonic_s()
    sample = made.client.sample(batch_items=16)
    sampled_s = CLOCK.monotonic_s() - began_s
    writer.append(step)
    writer.flush()
    LOG.info("after %s: sampled in %.3f s, written in %.3f s", how.name, sampled_s, CLOCK.monotonic_s() - began_s)
    assert len(sample) == 16
    assert made.client.known(item_keys).all()
    assert made.client.info()["items"] == 66
    assert made.client.rows_missing == 0


def end(process_id: int, how: signal.Signals) -> None:
    import psutil

    process = psutil.Process(process_id)
    process.send_signal(how)
    try:
        process.wait(timeout=10)
    except psutil.NoSuchProcess:
        pass


def test_p09_a_wrong_table_name_lists_the_tables_there_are(cell: Any) -> None:
    made, wrong = cell.table(), cell.nobody(name="reply")
    listed = f"{wrong.id} does not exist; create it first .there are: .*{made.id}"
    one = np.array([1], np.uint64)
    for name, call in {
        "sample": lambda: wrong.client.sample(batch_items=4),
        "get": lambda: wrong.client.get(one),
        "describe": wrong.client.describe,
        "change": lambda: wrong.client.change({"max_items": 5}),
        "reset": wrong.client.reset,
        "update": lambda: wrong.client.update_priorities(one, np.ones(1)),
        "delete": lambda: wrong.client.delete_items(one),
        "export": lambda: wrong.client.export(rows_max_bytes=1),
    }.items():
        with pytest.raises(TableError, match=listed):
            call()
            raise AssertionError(name)
    with pytest.raises(TableError, match="reply.*replay"):
        TrajectoryWriter(
            cell.store, cell.address, experiment=made.experiment, tables={"reply": EachRow()}, environments=1, clock=CLOCK
        )
    with pytest.raises(TableError, match="there is no table 'reply' here; this writer writes to: replay"):
        made.writer().create_item("reply", env=0, last=1)


def test_p10_unknown_keys_are_reported(cell: Any) -> None:
    made = cell.table(sampler=Prioritized())
    item_keys = made.insert(4)
    strangers = np.append(item_keys[:2], np.array([7, 8, 9], np.uint64))
    assert made.client.known(strangers).tolist() == [True, True, False, False, False]
    updated = made.client.update_priorities(strangers, np.ones(5), report_unknown=True)
    assert set(np.atleast_1d(updated.unknown).tolist()) in ({3}, {7, 8, 9})
    deleted = made.client.delete_items(strangers, report_unknown=True)
    assert set(np.atleast_1d(deleted.unknown).tolist()) in ({3}, {7, 8, 9})
    with pytest.raises(TableError, match="does not hold 5 of 5 keys|does not hold 3 of 5 keys"):
        made.client.get(strangers)
