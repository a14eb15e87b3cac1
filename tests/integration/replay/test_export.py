"""Tables out of a cell and into another: as a buffer and as a file, with other settings, over other shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, SchemaMismatch, TableError
from rollstream.replay import (
    EachRow,
    Lifo,
    MinSize,
    NStep,
    Prioritized,
    SampleToInsertRatio,
    TableClient,
    TableSpec,
    TableWriter,
)
from rollstream.replay.export_parts import ExportPart, parts_of_buffer, verify_export, written_buffers
from rollstream.replay.item_keys import shard_of
from rollstream.replay.packed import PackedArrays
from rollstream.spaces import Column, RowSpec
from rollstream.store import Address, Store, chunk_prefix, keys


@pytest.fixture
def connect(store: Store, address: Address) -> Iterator[Callable[[str], TableClient]]:
    """Makes clients, and closes them."""
    made: list[TableClient] = []

    def make(table_id: str) -> TableClient:
        made.append(TableClient(store, address, table_id=table_id, clock=SystemClock()))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def written(store: Store, address: Address, episodic: Any) -> Callable[..., np.ndarray]:
    """Writes some rollouts of four environments; returns the keys of the items."""

    def write(table_id: str, table_spec: TableSpec, *, rows: int = 16, rule: Any = None, **settings: Any) -> np.ndarray:
        writer = TableWriter(
            store,
            address,
            table_id=table_id,
            spec=table_spec,
            **({"rule": rule or EachRow()} if "tables" not in settings else {}),
            environments=4,
            clock=SystemClock(),
            deadline_s=10.0,
            **settings,
        )
        source = episodic(4, episode_steps=7)
        results = [writer.append(source.rollout(rows)) for _ in range(2)]
        writer.flush(deadline_s=10.0)
        writer.close()
        return np.concatenate([keys for result in results for keys in result.keys.values()])

    return write


def contents(client: TableClient, item_keys: np.ndarray) -> list[Any]:
    sample = client.get(item_keys)
    return [sample.rows["observation"].tolist(), sample.rows["flags"].tolist(), sample.priority.tolist(), sample.lead.tolist()]


@pytest.mark.parametrize("changes", [{}, {"chunk_rows": 4}, {"encoding": "zstd"}, {"encoding": "zstd", "chunk_rows": 4}])
def test_a_table_comes_back_with_its_items_rows_and_keys(
    *, replay_service: Any, connect: Any, written: Any, spec: Any, tmp_path: Path, changes: dict[str, Any]
) -> None:
    table_spec = spec(sampler=Prioritized(), **changes)
    client = connect("run-1.replay")
    client.create(table_spec)
    item_keys = written("run-1.replay", table_spec, rule=NStep(3))
    before = contents(client, item_keys)
    path = tmp_path / "table.export"
    facts = client.export_to(path)
    assert (facts["items"], verify_export(path)) == (len(item_keys), facts)
    exported = client.export(rows_max_bytes=1 << 30)
    client.drop()
    assert client.restore_from(path) == len(item_keys)  # makes the table of the export's settings
    assert client.spec() == table_spec
    assert contents(client, item_keys) == before
    assert len(client.sample(batch_items=16)) == 16
    other = connect("run-2.replay")
    other.create(table_spec)
    written("run-2.replay", table_spec)
    assert other.restore(exported) == len(item_keys)  # in the place of what was there
    assert contents(other, item_keys) == before


def test_an_export_holds_the_items_of_the_moment_when_it_was_begun(
    *, replay_service: Any, connect: Any, written: Any, spec: Any, tmp_path: Path
) -> None:
    client = connect("run-1.replay")
    client.create(spec())
    item_keys = written("run-1.replay", spec())
    export = client.begin_export()
    more = written("run-1.replay", spec())
    assert export.to_file(tmp_path / "export")["items"] == len(item_keys)
    assert client.restore_from(tmp_path / "export") == len(item_keys)
    assert client.known(item_keys).all()
    assert not client.known(more).any()


def test_writers_go_on_after_a_restore(*, replay_service: Any, connect: Any, written: Any, spec: Any, tmp_path: Path) -> None:
    table_spec = spec()
    client = connect("run-1.replay")
    client.create(table_spec)
    item_keys = written("run-1.replay", table_spec)
    client.export_to(tmp_path / "export")
    client.restore_from(tmp_path / "export")
    more = written("run-1.replay", table_spec)
    assert client.info()["items"] == len(item_keys) + len(more)
    assert client.known(np.concatenate([item_keys, more])).all()


def test_another_number_of_shards_takes_the_items_by_environments(
    *, replay_shard: Any, connect: Any, written: Any, spec: Any, tmp_path: Path
) -> None:
    for shard in range(3):
        replay_shard(shard=shard)
    client = connect("run-1.replay")
    client.create(spec(sampler=Prioritized()))
    item_keys = written("run-1.replay", spec(), rule=NStep(3))
    whole = client.get(item_keys)
    client.update_priorities(item_keys, np.arange(1.0, len(item_keys) + 1))
    client.export_to(tmp_path / "export")
    wider = connect("run-2.replay")
    assert wider.restore_from(tmp_path / "export", changes={"shards": 3}) == len(item_keys)
    restored = np.array([item["key"] for item in wider.items(order="oldest", limit=1000)], np.uint64)
    assert len(set(shard_of(restored).tolist())) > 1
    found = wider.get(restored)
    assert sorted(found.rows["observation"].tolist()) == sorted(whole.rows["observation"].tolist())
    assert sorted(found.priority.tolist()) == list(range(1, len(item_keys) + 1))
    assert len(wider.sample(batch_items=64)) == 64
    assert wider.info()["inserted"] == client.info()["inserted"]
    wider.export_to(tmp_path / "wider")
    assert wider.restore_from(tmp_path / "wider") == len(item_keys)
    assert wider.known(restored).all()
    narrow = connect("run-3.replay")
    assert narrow.restore_from(tmp_path / "wider", changes={"shards": 1}) == len(item_keys)
    assert sorted(item["priority"] for item in narrow.items(limit=1000)) == list(range(1, len(item_keys) + 1))


def test_a_smaller_table_keeps_what_its_remover_leaves(
    *, replay_service: Any, connect: Any, written: Any, spec: Any, tmp_path: Path
) -> None:
    client = connect("run-1.replay")
    client.create(spec())
    item_keys = written("run-1.replay", spec())
    client.export_to(tmp_path / "export")
    assert client.restore_from(tmp_path / "export", changes={"max_items": 10}) == 10
    assert client.known(item_keys).tolist() == [False] * (len(item_keys) - 10) + [True] * 10
    other = connect("run-2.replay")
    newest_first = {"max_items": 10, "remover": {"kind": Lifo().kind}}
    assert other.restore_from(tmp_path / "export", changes=newest_first) == 10
    assert other.known(item_keys).tolist() == [True] * 10 + [False] * (len(item_keys) - 10)
    with pytest.raises(ConfigError, match="min_items <= max_items fails: 20 > 10"):
        other.restore_from(tmp_path / "export", changes={"limiter": {"kind": "min_size", "min_items": 20}})


def test_other_rows_are_refused_column_by_column(
    *, replay_service: Any, connect: Any, written: Any, spec: Any, tmp_path: Path
) -> None:
    client = connect("run-1.replay")
    client.create(spec())
    item_keys = written("run-1.replay", spec())
    client.export_to(tmp_path / "export")
    other = connect("run-2.replay")
    rows = RowSpec(
        (
            Column(name="observation", dtype="<f4", shape=(4,)),
            Column(name="action", dtype="<i8"),
            Column(name="reward", dtype="<f4"),
        )
    )
    other.create(spec(rows=rows))
    with pytest.raises(SchemaMismatch, match="row columns differ.*observation"):
        other.restore_from(tmp_path / "export")
    grouped = connect("run-3.replay")
    grouped.create(spec(chunk_rows=4))
    with pytest.raises(SchemaMismatch, match="chunk_rows of table run-3.replay is 4, that of the export 1; rows are copied as"):
        grouped.restore_from(tmp_path / "export")
    assert client.known(item_keys).all()


def test_a_restored_limiter_lets_samplers_go_on_or_keeps_its_counts(
    *, replay_service: Any, connect: Any, written: Any, spec: Any, tmp_path: Path
) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=8, tolerance_items=200.0)
    client = connect("run-1.replay")
    client.create(spec(limiter=limiter))
    items = len(written("run-1.replay", spec(limiter=limiter)))
    while client.can_sample(batch_items=32):
        client.sample(batch_items=32)
    sampled = client.info()["sampled"]
    client.export_to(tmp_path / "export")
    client.drop()
    client.restore_from(tmp_path / "export", limiter="keep")
    assert (client.info()["inserted"], client.info()["sampled"]) == (items, sampled)
    assert not client.can_sample(batch_items=32)
    client.restore_from(tmp_path / "export")
    assert client.can_sample(batch_items=32)
    with pytest.raises(ConfigError, match="limiter of a restore is 'reset' or 'keep', got 'new'"):
        client.restore_from(tmp_path / "export", limiter="new")  # type: ignore[arg-type]


def test_only_the_newest_rows_are_exported_up_to_a_bound(replay_service: Any, connect: Any, written: Any, spec: Any) -> None:
    client = connect("run-1.replay")
    client.create(spec())
    item_keys = written("run-1.replay", spec())
    exported = client.export(rows_max_bytes=12 * spec().chunk_bytes)
    assert client.restore(exported) == 12
    assert client.known(item_keys[-12:]).all()
    with pytest.raises(TableError, match="holds no rows of its 12 items; raise rows_max_bytes"):
        client.restore(client.export(rows_max_bytes=0))
    assert client.info()["items"] == 12


def test_rows_that_are_gone_leave_their_items_out(
    *, replay_service: Any, connect: Any, written: Any, spec: Any, store: Store
) -> None:
    client = connect("run-1.replay")
    client.create(spec())
    item_keys = written("run-1.replay", spec())
    prefix = chunk_prefix("run-1.replay", 0)
    stored: Any = store.run("look", lambda redis: redis.keys("*"))
    rows = [key for key in stored if key.startswith(prefix) and len(key) == len(prefix) + keys.CHUNK_KEY_SUFFIX_BYTES]
    lost = sorted(rows)[:5]  # the first five of the first environment, each an item
    store.run("lose rows", lambda redis: redis.unlink(*lost))
    assert client.restore(client.export(rows_max_bytes=1 << 30)) == len(item_keys) - 5


def test_a_half_file_changes_nothing(*, replay_service: Any, connect: Any, written: Any, spec: Any, tmp_path: Path) -> None:
    client = connect("run-1.replay")
    client.create(spec())
    item_keys = written("run-1.replay", spec())
    path = tmp_path / "export"
    client.export_to(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(SchemaMismatch, match="half written or was cut off"):
        client.restore_from(path)
    damaged = bytearray(data)
    damaged[-400] ^= 1
    with pytest.raises(SchemaMismatch, match="checksum differs"):
        client.restore(damaged)
    parts = []
    for part in parts_of_buffer(data, what="export"):
        arrays = dict(part.content.arrays)
        if part.kind == "ROWS":
            arrays["payload"] = arrays["payload"][:, :-1]
        parts.append(ExportPart(kind=part.kind, content=PackedArrays(facts=part.content.facts, arrays=arrays)))
    with pytest.raises(SchemaMismatch, match="has chunks u1.* where the table's hold"):
        client.restore(b"".join(buffer for buffers in written_buffers(parts) for buffer in buffers))
    with pytest.raises(SchemaMismatch, match="begins with a part ROWS: it is damaged"):
        client.restore(data[:8] + data[data.index(b"ROWS") :])
    assert client.known(item_keys).all()


def test_a_table_over_the_rows_of_another_brings_its_rows_along(
    *, replay_service: Any, connect: Any, written: Any, spec: Any, tmp_path: Path
) -> None:
    primary_spec, other_spec = spec(), spec(name="steps", rows_of="replay", limiter=MinSize())
    primary, other = connect("run-1.replay"), connect("run-1.steps")
    primary.create(primary_spec)
    other.create(other_spec)
    written("run-1.replay", primary_spec, tables={"replay": EachRow(), "steps": NStep(3)})
    steps = np.array([item["key"] for item in other.items(order="oldest", limit=1000)], np.uint64)
    before = contents(other, steps)
    other.export_to(tmp_path / "steps")
    primary.export_to(tmp_path / "replay")
    other.drop()
    primary.drop()
    count = primary.restore_from(tmp_path / "replay")
    assert other.restore_from(tmp_path / "steps") == len(steps)
    assert contents(other, steps) == before
    assert primary.info()["items"] == count
