"""Writing step by step, and recorded rows at once: what comes into Redis, and what is refused with which words."""

from __future__ import annotations

import multiprocessing
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, NonFiniteError, SchemaMismatch, TableError
from rollstream.replay import (
    EachRow,
    Episode,
    NStep,
    Pattern,
    Sequence,
    TableClient,
    TdMix,
    TrajectoryWriter,
    condition,
    pattern_table,
    step,
)
from rollstream.replay.log import InsertEntry
from rollstream.spaces import Column, RowSpec
from rollstream.store import Address, Store

CLOCK = SystemClock()
EXPERIMENT = "run-abc123"
ROWS = RowSpec((Column(name="observation", dtype="<f4", shape=(2,)), Column(name="action", dtype="<i8")))


def at(number: int, environments: int = 2) -> dict[str, Any]:
    observation = np.stack([np.full(environments, number), np.arange(environments)], axis=1).astype(np.float32)
    return {"observation": observation, "action": np.full(environments, number)}


def runs(entry: InsertEntry, table: int | None = None) -> list[tuple[int, int, int]]:
    which = slice(None) if table is None or entry.table is None else entry.table == table
    return list(zip(entry.env[which].tolist(), entry.start[which].tolist(), entry.length[which].tolist(), strict=True))


def test_steps_become_rows_and_items_of_several_tables(log: Any) -> None:
    log.create()
    log.create("episodes", rows_of="replay")
    with log.writer({"replay": NStep(1), "episodes": Episode(100)}) as writer:
        for number in range(3):
            done = np.array([number == 2, False])
            writer.append(at(number), terminated=done, final={"observation": at(9)["observation"]}, version=number)
        assert writer.episode_steps().tolist() == [0, 3]
    items = [(entry, runs(entry, 0), runs(entry, 1)) for entry in log.entries()]
    assert sorted(item for _, transitions, _ in items for item in transitions) == [
        (0, 0, 2),
        (0, 1, 2),
        (0, 2, 2),
        (1, 0, 2),
        (1, 1, 2),
    ]
    assert sorted(item for _, _, episodes in items for item in episodes) == [(0, 0, 4), (1, 0, 3)]
    stored = log.rows(items[0][0].writer, 0, 4)
    assert stored["flags"].tolist() == [1, 0, 0, 10]
    assert stored["version"].tolist() == [0, 1, 2, 2]
    assert stored["observation"][:, 0].tolist() == [0, 1, 2, 9]


def test_a_wrong_table_name_lists_the_tables_there_are(log: Any) -> None:
    with pytest.raises(TableError, match="there is no table run-abc123.replay; run-abc123 has: none"):
        log.writer({"replay": NStep(1)}, table_wait_s=0.1)
    log.create()
    log.create("other")
    with pytest.raises(TableError, match="there is no table run-abc123.repaly; run-abc123 has: other, replay"):
        log.writer({"repaly": NStep(1)})
    with pytest.raises(ConfigError, match="hold rows of other and of replay; one writer writes the rows of one table"):
        log.writer({"replay": NStep(1), "other": NStep(1)})
    with pytest.raises(ConfigError, match="a writer needs the name of at least one table, got none"):
        log.writer({})
    log.create("lost", rows_of="gone")
    with pytest.raises(TableError, match="table run-abc123.gone, whose rows the others use, does not exist"):
        log.writer({"lost": NStep(1)})
    with pytest.raises(ConfigError, match="TrajectoryWriter: keep_steps must be >= 1, got 0"):
        log.writer({"replay": NStep(1)}, keep_steps=0)
    writer = log.writer({"replay": []})
    writer.append(at(0))
    with pytest.raises(TableError, match="there is no table 'nope' here; this writer writes to: replay"):
        writer.create_item("nope", env=0, last=1)


def test_items_can_be_made_by_name_with_keys_known_at_once(log: Any) -> None:
    log.create()
    log.create("second", rows_of="replay")
    with log.writer({"second": [], "replay": EachRow()}, keep_steps=3, flush_steps=2) as writer:
        made = []
        for number in range(5):
            writer.append(at(number))
            if number >= 2:
                made += writer.create_item("second", env=[0, 1], last=3, priority=float(number)).tolist()
        again = writer.create_item("second", env=1, last=slice(-2, -1), key=made[0])
        assert again.tolist() == made[:1]
    entries = log.entries()
    explicit = [run for entry in entries for run in runs(entry, 0)]
    assert explicit == [(0, 0, 3), (1, 0, 3), (0, 1, 3), (1, 1, 3), (0, 2, 3), (1, 2, 3), (1, 3, 1)]
    found = [key for entry in entries if entry.key is not None for key in entry.key.tolist() if key]
    assert found == [*made, made[0]]
    assert len(set(made)) == 6
    ordinals = [entry.first_ordinal for entry in entries]
    assert ordinals == sorted(ordinals)
    given = [
        entry.priority[entry.table == 0].tolist() for entry in entries if entry.priority is not None and entry.table is not None
    ]
    assert [priority for part in given for priority in part][:6] == [2, 2, 3, 3, 4, 4]


def test_rows_that_are_not_kept_cannot_be_asked_for(log: Any) -> None:
    log.create()
    writer = log.writer({"replay": []}, keep_steps=3, flush_steps=2)
    for number in range(6):
        writer.append(at(number))
    with pytest.raises(
        TableError,
        match="the row 4 back of environment 1, of which the newest 3 can be used: keep_steps is 3, and its episode has 6",
    ):
        writer.create_item("replay", env=1, last=4)
    writer.end_episode([0])
    writer.append(at(6))
    with pytest.raises(TableError, match="the row 2 back of environment 0, of which the newest 1 can be used"):
        writer.create_item("replay", env=[1, 0], last=2)
    with pytest.raises(TableError, match="last takes a number of rows >= 1, or a slice, got 0"):
        writer.create_item("replay", env=0, last=0)
    with pytest.raises(TableError, match="last takes a slice that counts from the newest row"):
        writer.create_item("replay", env=0, last=slice(-1, -3))
    with pytest.raises(TableError, match="2 keys were given for items of 1 environments; give one for each"):
        writer.create_item("replay", env=0, last=1, key=np.array([1, 2], np.uint64))
    with pytest.raises(TableError, match="lies on shard 3, this writer writes to shard 0; change its priority with TableClient"):
        writer.create_item("replay", env=0, last=1, key=3 << 56)
    with pytest.raises(TableError, match="priorities must be finite and >= 0, got nan"):
        writer.create_item("replay", env=0, last=1, priority=float("nan"))
    with pytest.raises(SchemaMismatch, match=r"environments are 0..1, got \[2\]"):
        writer.create_item("replay", env=2, last=1)
    with pytest.raises(SchemaMismatch, match=r"an environment was named twice in one call: \[1, 1\]"):
        writer.append(at(7), environments=[1, 1])
    with pytest.raises(SchemaMismatch, match="a mask of environments has 2 entries, got 3"):
        writer.append(at(7), environments=np.ones(3, np.bool_))
    with pytest.raises(SchemaMismatch, match="terminated and truncated have one entry for each of 2 environments, got 3"):
        writer.append(at(7), terminated=np.ones(3, np.bool_))
    with pytest.raises(SchemaMismatch, match="a partial step cannot end an episode; complete it first"):
        writer.append(at(7), terminated=np.ones(2, np.bool_), partial=True)


def test_steps_in_parts_of_some_environments_end_with_the_observation_that_came_last(log: Any) -> None:
    log.create()
    with log.writer({"replay": NStep(1)}) as writer:
        writer.append({"observation": at(0)["observation"]}, partial=True)
        writer.append({"action": np.array([5, 6])})
        writer.append({"observation": at(1)["observation"]}, partial=True)
        writer.append({"action": np.array([7])}, environments=[1])
        writer.end_episode([0], truncated=False)
    (entry,) = [entry for entry in log.entries() if len(entry.episode_env)]
    first, second = log.rows(entry.writer, 0, 2), log.rows(entry.writer, 1, 2)
    assert (first["flags"].tolist(), first["action"].tolist()) == ([1, 10], [5, 0])
    assert first["observation"][:, 0].tolist() == [0, 1]
    assert (second["flags"].tolist(), second["action"].tolist()) == ([1, 0], [6, 7])


def test_a_pattern_fills_a_table_that_has_its_view(log: Any) -> None:
    pattern = Pattern(
        {"pair": step["observation"][-2:], "action": step["action"][-1]}, conditions=[condition.steps_since_applied >= 2]
    )
    log.add(pattern_table(pattern, ROWS, name="replay", max_items=100))
    with log.writer({"replay": pattern}, flush_steps=3) as writer:
        for number in range(8):
            writer.append(at(number))
    made = [run for entry in log.entries() for run in runs(entry)]
    assert sorted(made) == [(env, start, 2) for env in (0, 1) for start in (0, 2, 4, 6)]
    log.create("plain", rows_of="replay")
    with pytest.raises(SchemaMismatch, match="table plain has another view than the pattern that is to fill it"):
        log.writer({"plain": pattern})


def test_steps_are_kept_when_there_is_no_room_and_written_once(log: Any) -> None:
    log.create(unread_entries=1)
    writer = log.writer({"replay": EachRow()}, flush_steps=2, deadline_s=0.1)
    for number in range(4):
        writer.append(at(number))
    with pytest.raises(DeadlineExceeded, match="table run-abc123.replay shard 0: writer .* waited .* for room for its next rows"):
        writer.append(at(4))
    with pytest.raises(DeadlineExceeded, match="1 of 1 flushes are not admitted. It waits for: the replay shard to read its log"):
        writer.flush(deadline_s=0.1)
    writer.close()
    assert [entry.end.tolist() for entry in log.entries()] == [[2, 2], [4, 4], [4, 4]]


def test_a_step_that_a_rule_could_not_take_is_refused_and_the_writer_goes_on(log: Any) -> None:
    log.create(rows=RowSpec((*ROWS.columns, Column(name="td", dtype="<f4"))))
    rules = [EachRow(priority=TdMix("td")), Episode(3, overlong="error")]
    with log.writer({"replay": rules}, flush_steps=2) as writer:
        with pytest.raises(
            NonFiniteError, match="column td is nan in entry 1 of the step, and item priorities are computed from it"
        ):
            writer.append({**at(0), "td": np.array([1.0, np.nan])})
        for number in range(4):
            writer.append({**at(number), "td": np.array([1.0, 2.0])})
        with pytest.raises(
            TableError, match="an episode of environment 0 would have 4 steps, where Episode takes at most max_length 3"
        ):
            writer.append({**at(4), "td": np.ones(2)})
        with pytest.raises(TableError, match="of environment 1 would have 4 steps"):
            writer.end_episode([1], truncated=False)
        writer.end_episode()
        writer.append({**at(5), "td": np.ones(2)}, environments=[0])
    assert sum(entry.items for entry in log.entries()) == 8 + 1 + 2


def test_an_episode_that_was_cut_has_all_its_items_with_the_next_flush(log: Any) -> None:
    log.create()
    writer = log.writer({"replay": NStep(3)}, keep_steps=5)
    for number in range(4):
        writer.append(at(number))
    writer.end_episode([0])
    for _ in range(2):
        with pytest.raises(DeadlineExceeded, match="its rows to be admitted"):
            writer.flush(deadline_s=0.05)
    assert [sorted(runs(entry)) for entry in log.entries()] == [[(0, 0, 4), (0, 1, 3), (0, 2, 2), (1, 0, 4)]]
    writer.append(at(4))
    with pytest.raises(DeadlineExceeded, match="its rows to be admitted"):
        writer.flush(deadline_s=0.05)
    assert runs(log.entries()[-1]) == [(1, 1, 4)]


def test_keys_stay_unique_when_a_flush_has_to_be_repeated(log: Any, store: Store) -> None:
    log.create()
    writer = log.writer({"replay": EachRow()}, flush_steps=2, deadline_s=0.1)
    store.client.config_set("maxmemory", "1")
    try:
        for number in range(4):
            writer.append(at(number))
        with pytest.raises(DeadlineExceeded, match="out of memory"):
            writer.append(at(4))
        named = writer.create_item("replay", env=[0, 1], last=1).tolist()
        with pytest.raises(DeadlineExceeded, match="out of memory"):
            writer.append(at(4))
    finally:
        store.client.config_set("maxmemory", "0")
    writer.append(at(4))
    writer.close()
    entries = log.entries()
    made = [key for entry in entries for key in range(entry.first_ordinal, entry.first_ordinal + entry.items)]
    assert [entry.end.tolist() for entry in entries] == [[2, 2], [4, 4], [5, 5], [5, 5]]
    assert entries[2].key is not None
    assert entries[2].key.tolist() == [0, 0, *named]
    assert not {key & 0xFFFFFFFF for key in named} & set(made[:10])
    assert [entry.first_ordinal for entry in entries] == [0, 4, 10, 12]


def test_a_flush_writes_whole_episodes_though_their_chunk_is_not_full(log: Any) -> None:
    log.create(chunk_rows=4)
    with log.writer({"replay": NStep(1)}, keep_steps=2) as writer:
        for number in range(3):
            writer.append(at(number), terminated=np.array([number == 2, False]))
        with pytest.raises(DeadlineExceeded, match="its rows to be admitted"):
            writer.flush(deadline_s=0.1)
        (entry,) = log.entries()
        assert entry.end.tolist() == [4, 0]
        with pytest.raises(DeadlineExceeded, match="its rows to be admitted"):
            writer.flush(deadline_s=0.1)
        writer.append(at(3), truncated=np.array([True, False]))
        with pytest.raises(DeadlineExceeded, match="its rows to be admitted"):
            writer.flush(deadline_s=0.1)
        writer.create_item("replay", env=0, last=1)
        writer.append(at(4))
        writer.create_item("replay", env=0, last=1)
    last = [
        run for entry in log.entries() if entry.key is not None for run, key in zip(runs(entry), entry.key, strict=True) if key
    ]
    assert last == [(0, 4, 1), (0, 8, 1)]
    assert len(log.entries()[-1].episode_env) == 1


def _leave(writer: TrajectoryWriter) -> None:
    with writer:
        writer.append(at(1))


def test_a_forked_child_that_lets_go_writes_nothing(log: Any) -> None:
    log.create()
    writer = log.writer({"replay": EachRow()})
    writer.append(at(0))
    child = multiprocessing.get_context("fork").Process(target=_leave, args=(writer,))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    assert log.entries() == []
    writer.close()
    assert [entry.end.tolist() for entry in log.entries()] == [[1, 1], [1, 1]]


def test_what_is_sampled_are_the_steps_that_were_appended(replay_service: Any, store: Store, address: Address, log: Any) -> None:
    """All the way: two tables over the same rows, one through a pattern, one of sequences with burn-in."""
    pattern = Pattern(
        {"pair": step["observation"][[-3, -1]], "action": step["action"][-2]}, conditions=[condition.step_index % 2 == 0]
    )
    sequences = TableClient(store, address, table_id=f"{EXPERIMENT}.replay", clock=CLOCK)
    pairs = TableClient(store, address, table_id=f"{EXPERIMENT}.pairs", clock=CLOCK)
    sequences.create(log.spec(rows=ROWS, chunk_rows=2))
    pairs.create(pattern_table(pattern, ROWS, name="pairs", max_items=1000, rows_of="replay", chunk_rows=2))
    tables = {"replay": Sequence(length=4, stride=4, burn_in=2), "pairs": pattern}
    with log.writer(tables, environments=3, flush_steps=5, keep_steps=4) as writer:
        for number in range(40):
            done = np.array([number % 10 == 9] * 3)
            writer.append(at(number, 3), terminated=done, final={"observation": at(number + 1, 3)["observation"]}, version=number)
            if number == 22:
                (key,) = writer.create_item("replay", env=1, last=3, priority=0.25).tolist()
        writer.flush(deadline_s=20)
        assert (sequences.info()["items"], pairs.info()["items"]) == (4 * 3 * 3 + 1, 4 * 4 * 3 + 4 * 3 * 1)
        named = sequences.get(np.array([key], np.uint64))
        assert (named.rows["action"][0, :3].tolist(), named.priority.tolist()) == ([20, 21, 22], [0.25])
        assert named.version.tolist() == [22]
        sample = sequences.sample(batch_items=64, deadline_s=10)
        for item in range(64):
            action = sample.rows["action"][item][sample.mask[item]]
            first = int(action[0])
            assert action[: len(action) - 1].tolist() == list(range(first, first + len(action) - 1))
            assert int(sample.lead[item]) in (0, 2)
        seen = pairs.sample(batch_items=64, deadline_s=10)
        assert (seen.rows["pair"][:, 1, 0] - seen.rows["pair"][:, 0, 0]).tolist() == [2.0] * 64
        assert seen.rows["action"].tolist() == (seen.rows["pair"][:, 0, 0] + 1).tolist()
    sequences.close()
    pairs.close()
