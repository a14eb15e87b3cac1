"""Rows of items, however they are stored: what is fetched is what a plain loop over the written rows would give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import SchemaMismatch
from rollstream.replay.encoding import Codec
from rollstream.replay.row_fetch import FetchedRows, RowFetch, read_joined
from rollstream.replay.samples import COLUMNS, SampledItems
from rollstream.replay.spec import TableSpec
from rollstream.replay.view import ColumnView
from rollstream.spaces import Column, Flag, RowSpec, optional, ragged
from rollstream.store import Address, ChunkReader, ChunkWriter, Store, chunk_prefix

ROWS = RowSpec(
    (
        Column(name="observation", dtype="|u1", shape=(16, 16)),
        Column(name="action", dtype="<i8"),
        Column(name="reward", dtype="<f4"),
        Column(name="nothing", dtype="<f4", shape=(0,)),
    )
)
TABLE = "run-abc123.replay"
EPISODE_ROWS = 7
STREAM_ROWS = 64
NAMES = ("flags", "version", "observation", "action", "reward", "nothing")


@dataclass
class Shard:
    """Rows of some environments of writers on one shard, and what was written."""

    spec: TableSpec
    number: int
    reader: ChunkReader
    writer: ChunkWriter
    rows: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)

    def write(self, writer: int, environments: int) -> None:
        """Episodes of 7 rows, random otherwise."""
        generator = np.random.default_rng([writer, self.number])
        spec, number = self.spec, np.arange(STREAM_ROWS // self.spec.chunk_rows, dtype=np.uint64)
        for env in range(environments):
            dtype = spec.row_spec.dtype
            rows = np.frombuffer(generator.bytes(STREAM_ROWS * dtype.itemsize), dtype).copy()
            for name in dtype.names or ():
                if dtype[name].base.kind == "f":
                    rows[name] = generator.standard_normal(rows[name].shape)
            rows["flags"] = 0
            rows["flags"][::EPISODE_ROWS] = Flag.FIRST
            rows["flags"][EPISODE_ROWS - 1 :: EPISODE_ROWS] = Flag.FINAL | Flag.TERMINATED
            self.rows[writer, env] = rows
            payload = rows.view(np.uint8).reshape(len(number), -1)
            envs = np.full(len(number), env, np.uint32)
            prefix = chunk_prefix(TABLE, self.number)
            if spec.resolved_encoding == "raw":
                self.writer.write(prefix, writer, envs, number, payload)
            else:
                self.writer.write_values(prefix, writer, envs, number, Codec(spec).encode(payload).values)

    def fetch(self) -> RowFetch:
        return RowFetch(self.reader, table_id=TABLE, shard=self.number, spec=self.spec)

    def run(self, items: SampledItems, k: int) -> np.ndarray:
        start = int(items.start[k])
        return self.rows[int(items.writer[k]), int(items.env[k])][start : start + int(items.length[k])]


def make_spec(**changes: Any) -> TableSpec:
    return TableSpec.model_validate({"name": "replay", "max_items": 1000, "rows": ROWS, **changes})


@pytest.fixture
def shard(store: Store, address: Address) -> Iterator[Callable[..., Shard]]:
    made: list[Shard] = []

    def make(number: int = 0, **changes: Any) -> Shard:
        clock = SystemClock()
        reader, writer = ChunkReader(address, clock=clock), ChunkWriter(address, clock=clock)
        shard = Shard(spec=make_spec(**changes), number=number, reader=reader, writer=writer)
        made.append(shard)
        for writer_id in (1, 0xABCDEF):
            shard.write(writer_id, environments=2)
        return shard

    yield make
    for opened in made:
        opened.reader.close()
        opened.writer.close()


def items(**columns: Any) -> SampledItems:
    """Items with the columns given; the others are 0, writers are 1 and 0xABCDEF in turn."""
    count = max(np.size(value) for value in columns.values())
    given = {"writer": np.resize([1, 0xABCDEF], count), "env": np.arange(count) // 2 % 2, **columns}
    arrays = {name: np.broadcast_to(np.asarray(given.get(name, 0)), count).astype(dtype) for name, dtype in COLUMNS}
    return SampledItems(**arrays, table_items=count)


def require_runs(fetched: FetchedRows, runs: list[np.ndarray], lead: np.ndarray) -> None:
    """All runs stand where they should, byte for byte, and everything else is padding."""
    left = int(lead.max(initial=0))
    longest = max((len(run) - int(before) for run, before in zip(runs, lead, strict=True)), default=0)
    expected = np.zeros((len(runs), left + longest), runs[0].dtype)
    expected["flags"] = Flag.PAD
    mask = np.zeros(expected.shape, np.bool_)
    for k, run in enumerate(runs):
        begin = left - int(lead[k])
        expected[k, begin : begin + len(run)] = run
        mask[k, begin : begin + len(run)] = True
    assert tuple(fetched.rows) == expected.dtype.names
    for name, column in fetched.rows.items():
        assert column.flags.c_contiguous
        assert column.flags.writeable
        assert column.tobytes() == expected[name].tobytes(), name
    assert (fetched.mask == mask).all()
    assert fetched.lengths.tolist() == [len(run) for run in runs]
    assert fetched.lead.tolist() == lead.tolist()
    assert not fetched.missing.any()


@pytest.mark.parametrize("encoding", ["raw", "zstd"])
@pytest.mark.parametrize("chunk_rows", [1, 4])
@pytest.mark.parametrize(
    "columns",
    [
        {"start": np.arange(9) * 4, "length": 4},  # whole chunks, or single rows, all alike
        {"start": np.arange(9) * 4 + 3, "length": 6},  # alike, but not from the first row of a chunk
        {"start": np.arange(40) % 30, "length": 1},
        {"start": np.arange(30), "length": np.arange(30) % 5 + 1},
        {"start": np.arange(30), "length": np.arange(30) % 5 + 3, "lead": np.arange(30) % 3},
        {"start": np.arange(12) * 4, "length": 8, "lead": 3},
        {"start": np.full(20, 5), "length": 9},  # the same rows again and again
    ],
)
def test_items_are_read_as_they_were_written(
    shard: Callable[..., Shard], columns: dict[str, Any], chunk_rows: int, encoding: str
) -> None:
    made = shard(chunk_rows=chunk_rows, encoding=encoding)
    wanted = items(**columns)
    fetched = made.fetch().read(wanted)
    require_runs(fetched, [made.run(wanted, k) for k in range(len(wanted))], wanted.lead)


@pytest.mark.parametrize("encoding", ["raw", "zstd"])
@pytest.mark.parametrize("chunk_rows", [1, 2, 16])
def test_random_batches_are_read_as_they_were_written(shard: Callable[..., Shard], chunk_rows: int, encoding: str) -> None:
    made = shard(chunk_rows=chunk_rows, encoding=encoding)
    fetch, generator = made.fetch(), np.random.default_rng(chunk_rows)
    for _ in range(25):
        count, longest = int(generator.integers(1, 40)), int(generator.integers(1, 20))
        length = generator.integers(1, longest + 1, count) if generator.random() < 0.7 else np.full(count, longest)
        starts = generator.integers(0, int(generator.integers(1, STREAM_ROWS - longest)), count)  # a short range repeats rows
        lead = generator.integers(0, length) if generator.random() < 0.5 else np.zeros(count, np.int64)
        wanted = items(start=starts, length=length, lead=lead, env=generator.integers(0, 2, count))
        require_runs(fetch.read(wanted), [made.run(wanted, k) for k in range(count)], wanted.lead)


@pytest.mark.parametrize("columns", [{"length": 3}, {"length": np.arange(24) % 3 + 1, "lead": np.arange(24) % 2}])
@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_of_several_shards_stand_in_one_batch(shard: Callable[..., Shard], columns: dict[str, Any], shuffled: bool) -> None:
    shards = [shard(number, shards=3) for number in range(3)]
    wanted = items(start=np.arange(24), **columns)
    where = np.arange(24)
    if shuffled:
        np.random.default_rng(0).shuffle(where)
    places = [np.sort(where[:10]), np.zeros(0, np.int64), np.sort(where[10:])]
    fetched = read_joined([s.fetch() for s in shards], [wanted.part(place) for place in places], places=places)
    owner = np.zeros(24, np.int64)
    owner[places[2]] = 2
    require_runs(fetched, [shards[owner[k]].run(wanted, k) for k in range(24)], wanted.lead)


@pytest.mark.parametrize("encoding", ["raw", "zstd"])
@pytest.mark.parametrize("length", [4, np.arange(10) % 3 + 2])
def test_items_that_lack_a_row_are_told_and_the_others_read(shard: Callable[..., Shard], length: Any, encoding: str) -> None:
    made = shard(chunk_rows=2, encoding=encoding)
    wanted = items(start=np.arange(10) * 2, length=length)
    gone = np.array([3, 4])
    made.reader.unlink(
        chunk_prefix(TABLE, 0), wanted.writer[gone], wanted.env[gone], (wanted.start[gone] // np.uint64(2)).astype(np.uint64)
    )
    fetched = made.fetch().read(wanted)
    assert np.flatnonzero(fetched.missing).tolist() == gone.tolist()
    for k in np.flatnonzero(~fetched.missing):
        run = made.run(wanted, k)
        assert all((fetched.rows[name][k, : len(run)] == run[name]).all() for name in NAMES)


def test_no_items_are_no_rows(shard: Callable[..., Shard]) -> None:
    for changes in ({}, {"stack": {"observation": 4}}, {"view": [ColumnView(name="x", column="reward", index=-1)]}):
        fetched = shard(**changes).fetch().read(SampledItems.nothing())
        assert all(len(column) == 0 for column in fetched.rows.values())
        assert len(fetched.mask) == len(fetched.missing) == 0


def test_a_damaged_chunk_is_named(shard: Callable[..., Shard]) -> None:
    made = shard(encoding="zstd", chunk_rows=4)
    made.writer.write_values(
        chunk_prefix(TABLE, 0), 1, np.array([1], np.uint32), np.array([5], np.uint64), [bytes([0b1110_0001]) + b"garbage"]
    )
    with pytest.raises(SchemaMismatch, match=f"table {TABLE}, chunk 5 of environment 1 of writer 1 is damaged"):
        made.fetch().read(items(start=np.arange(16), length=9))


def test_raw_chunks_of_other_rows_are_refused(shard: Callable[..., Shard]) -> None:
    made = shard(chunk_rows=4)
    other = RowFetch(made.reader, table_id=TABLE, shard=0, spec=make_spec(chunk_rows=2))
    with pytest.raises(SchemaMismatch, match="reader and writer disagree about the rows"):
        other.read(items(start=np.arange(4), length=1))


# --- views ---------------------------------------------------------------------------------------------------------------

VIEWS = [
    ColumnView(name="observation", column="observation", start=-4, stop=-1),
    ColumnView(name="next", column="observation", index=-1),
    ColumnView(name="sparse", column="action", start=-5, step=2),
    ColumnView(name="some", column="reward", indices=(-1, -5, -1)),
    ColumnView(name="all", column="reward"),
]


@pytest.mark.parametrize("chunk_rows", [1, 4])
@pytest.mark.parametrize("length", [6, np.arange(12) % 4 + 5])
def test_views_count_from_the_newest_row(shard: Callable[..., Shard], length: Any, chunk_rows: int) -> None:
    made = shard(view=VIEWS, chunk_rows=chunk_rows)
    wanted = items(start=np.arange(12), length=length, lead=np.arange(12) % 2)
    rows = made.fetch().read(wanted).rows
    assert set(rows) == {"flags", "version", "observation", "next", "sparse", "some", "all"}
    for k in range(len(wanted)):
        run = made.run(wanted, k)
        assert (rows["observation"][k] == run["observation"][-4:-1]).all()
        assert (rows["next"][k] == run["observation"][-1]).all()
        assert (rows["sparse"][k] == run["action"][[-5, -3, -1]]).all()
        assert (rows["some"][k] == run["reward"][[-1, -5, -1]]).all()
        assert set(run["reward"]) <= set(rows["all"][k].tolist())


def test_views_of_equal_items_copy_nothing(shard: Callable[..., Shard]) -> None:
    rows = shard(view=VIEWS).fetch().read(items(start=np.arange(8), length=6)).rows
    assert np.shares_memory(rows["observation"], rows["next"]) is False, "different rows"
    assert rows["observation"].base is not None
    assert rows["next"].base is rows["observation"].base


def test_columns_that_no_view_looks_at_are_not_read(shard: Callable[..., Shard]) -> None:
    rows = shard(view=[ColumnView(name="r", column="reward", index=-1)]).fetch().read(items(start=np.arange(8), length=6)).rows
    assert set(rows) == {"flags", "version", "r"}


def test_an_item_too_short_for_a_view_is_told(shard: Callable[..., Shard]) -> None:
    made = shard(view=VIEWS)
    with pytest.raises(SchemaMismatch, match="an item of 4 rows is too short for its view 'sparse', which needs 5; write items"):
        made.fetch().read(items(start=np.arange(3), length=[6, 4, 5]))


def test_companions_follow_the_columns_that_views_take(shard: Callable[..., Shard]) -> None:
    rows = RowSpec(
        (*ragged(Column(name="tokens", dtype="<i4", shape=(5,))), *optional(Column(name="goal", dtype="<f4", shape=(2,))))
    )
    views = [ColumnView(name="words", column="tokens", index=-1), ColumnView(name="aim", column="goal", start=-2)]
    made = shard(rows=rows, view=views)
    wanted = items(start=np.arange(4), length=3)
    fetched = made.fetch().read(wanted).rows
    for k in range(4):
        run = made.run(wanted, k)
        assert fetched["words.length"][k] == run["tokens.length"][-1]
        assert (fetched["aim.present"][k] == run["goal.present"][-2:]).all()


# --- stacks --------------------------------------------------------------------------------------------------------------


def stack_of(run: np.ndarray, row: int, frames: int) -> np.ndarray:
    """Frames of one row, worked out one by one: those before the episode repeat its first."""
    first = max(at for at in range(row + 1) if at == 0 or run["flags"][at] & Flag.FIRST)
    return np.stack([run["observation"][max(row - back, first)] for back in range(frames - 1, -1, -1)])


STARTS = np.array([0, 1, 4, 7, 11, 14, 15, 0])
LEAD = np.array([0, 1, 3, 0, 3, 0, 1, 0])
"""Rows of the episode before the core, up to three of them; episodes begin at 0, 7 and 14."""


@pytest.mark.parametrize("encoding", ["raw", "zstd"])
@pytest.mark.parametrize("core", [2, np.arange(8) % 2 + 2])
@pytest.mark.parametrize("rows", [slice(None), slice(2, None, 2), slice(0, None, 7)])
def test_frames_are_stacked_and_repeat_the_first_of_an_episode(
    shard: Callable[..., Shard], core: Any, rows: slice, encoding: str
) -> None:
    made = shard(stack={"observation": 4}, encoding=encoding)
    wanted = items(start=STARTS - LEAD, length=LEAD + core, lead=LEAD).part(rows)
    fetched = made.fetch().read(wanted)
    longest = int((wanted.length - wanted.lead).max())
    assert fetched.rows["observation"].shape == (len(wanted), longest, 4, 16, 16)
    assert fetched.rows["reward"].shape == (len(wanted), longest)
    for k in range(len(wanted)):
        run, lead = made.run(wanted, k), int(wanted.lead[k])
        assert fetched.lead[k] == 0
        assert fetched.lengths[k] == len(run) - lead
        assert fetched.mask[k].tolist() == [True] * (len(run) - lead) + [False] * (longest - len(run) + lead)
        for row in range(lead, len(run)):
            assert (fetched.rows["observation"][k, row - lead] == stack_of(run, row, 4)).all()
            assert fetched.rows["reward"][k, row - lead] == run["reward"][row]


def test_burn_in_remains_when_stacks_are_complete(shard: Callable[..., Shard]) -> None:
    made = shard(stack={"observation": 3})
    wanted = items(start=[0, 8, 7], length=[5, 6, 4], lead=[2, 4, 1])  # a burn-in of 2, then 2 rows for stacks; cut at starts
    fetched = made.fetch().read(wanted)
    assert fetched.lead.tolist() == [2, 2, 1]
    assert fetched.lengths.tolist() == [5, 4, 4]
    for k in range(3):
        run = made.run(wanted, k)
        kept = int(fetched.lengths[k])
        begin = 2 - int(fetched.lead[k])
        for row in range(kept):
            found = fetched.rows["observation"][k, begin + row]
            assert (found == stack_of(run, len(run) - kept + row, 3)).all()


def test_stacks_do_not_reach_into_the_episode_before(shard: Callable[..., Shard]) -> None:
    made = shard(stack={"observation": 4})
    wanted = items(start=[0, 5], length=[6, 6], lead=[0, 0])  # the second begins in the middle, which only its lead would allow
    with pytest.raises(
        SchemaMismatch, match="begins in the middle of an episode with a lead of 0 rows, stacks of 4 frames need 3"
    ):
        made.fetch().read(wanted)
    wanted = items(start=[0, 3], length=[6, 9], lead=[0, 3])  # rows of two episodes: 3 .. 6 and 7 .. 11
    fetched = made.fetch().read(wanted)
    run = made.run(wanted, 1)
    for row in range(3, 9):
        assert (fetched.rows["observation"][1, row - 3] == stack_of(run, row, 4)).all()


def test_views_may_look_at_stacks(shard: Callable[..., Shard]) -> None:
    views = [ColumnView(name="now", column="observation", index=-2), ColumnView(name="then", column="observation", index=-1)]
    made = shard(stack={"observation": 4}, view=views)
    wanted = items(start=STARTS - LEAD, length=LEAD + 2, lead=LEAD)
    rows = made.fetch().read(wanted).rows
    for k in range(len(wanted)):
        run = made.run(wanted, k)
        assert (rows["now"][k] == stack_of(run, len(run) - 2, 4)).all()
        assert (rows["then"][k] == stack_of(run, len(run) - 1, 4)).all()
