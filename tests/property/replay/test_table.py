"""Laws of the table index: against a plain model in Python dictionaries, for any sequence of operations."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.replay.group import TableGroup
from rollstream.replay.group_state import capture, load_snapshot
from rollstream.replay.limiter_spec import MinSize, SampleToInsertRatio
from rollstream.replay.log import DeleteEntry, InsertEntry, UpdateEntry
from rollstream.replay.packed import pack, unpack
from rollstream.replay.selector_spec import Fifo, Lifo, MaxHeap, MinHeap, Prioritized, Uniform, WithoutReplacement
from rollstream.replay.spec import TableSpec
from rollstream.replay.sum_tree import SumTree
from rollstream.replay.table import Table

ROWS = [["observation", "<f4", []], ["reward", "<f4", []]]
SELECTORS = st.sampled_from([Uniform(), Fifo(), Lifo(), MinHeap(), MaxHeap(), WithoutReplacement(), Prioritized(exponent=1.0)])


class Model:
    """Writers of several environments whose items span 1..3 rows, and the chunks that must exist."""

    def __init__(self, *, environments: int, chunk_rows: int) -> None:
        self.environments, self.chunk_rows = environments, chunk_rows
        self.sequence: Counter[int] = Counter()
        self.ordinals: Counter[int] = Counter()
        self.rows: Counter[tuple[int, int]] = Counter()
        self.pinned: dict[tuple[int, int], tuple[int, int]] = {}
        self.freed: set[tuple[int, int, int]] = set()

    def entry(self, writer: int, counts: list[int], span: int, overlap: int) -> InsertEntry:
        self.sequence[writer] += 1
        start, env, keep, end = [], [], [], []
        for index in range(self.environments):
            first, rows = self.rows[writer, index], counts[index]
            low = self.pinned.get((writer, index), (0, 0))[0]
            last = first + rows
            begins = [row for row in range(low, last) if row + span <= last]
            start += begins
            env += [index] * len(begins)
            kept = max(low, last - overlap) if begins else low
            keep.append(max(low, min(last, kept)))
            end.append(last)
            self.rows[writer, index] = last
            self.pinned[writer, index] = (keep[-1], last)
        entry = InsertEntry(
            writer=writer,
            sequence=self.sequence[writer],
            keep=np.array(keep, np.uint64),
            end=np.array(end, np.uint64),
            start=np.array(start, np.uint64),
            env=np.array(env, np.uint32),
            length=np.full(len(start), span, np.uint32),
            version=np.zeros(len(start), np.uint32),
            episode_env=np.array([index for index in range(self.environments) if counts[index] > 2], np.uint32),
            episode_start=np.array([end[index] - 2 for index in range(self.environments) if counts[index] > 2], np.uint64),
            first_ordinal=self.ordinals[writer],
        )
        self.ordinals[writer] += entry.items
        return entry

    def required(self, table: Table) -> set[tuple[int, int, int]]:
        """Chunks that items cover or writers pin."""
        items, needed = table.items, set()
        for slot in items.live().tolist():
            first = int(table.start_rows(np.array([slot]))[0])
            last, run = first + int(items.length[slot]) - 1, int(items.run[slot])
            for chunk in range(first // self.chunk_rows, last // self.chunk_rows + 1):
                needed.add((int(table.rows.runs.writer[run]), int(table.rows.runs.env[run]), chunk))
        for (writer, env), (low, end) in self.pinned.items():
            needed |= {(writer, env, chunk) for chunk in range(low // self.chunk_rows, -(-end // self.chunk_rows))}
        return needed

    def written(self) -> set[tuple[int, int, int]]:
        return {(writer, env, chunk) for (writer, env), rows in self.rows.items() for chunk in range(-(-rows // self.chunk_rows))}

    def collect(self, table: TableGroup) -> None:
        garbage = table.take_garbage()
        for address in zip(garbage.writer.tolist(), garbage.env.tolist(), garbage.chunk_no.tolist(), strict=True):
            assert address not in self.freed, "a chunk is freed once"
            self.freed.add(address)


operations = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "insert", "sample", "update", "delete", "restore"]),
        st.integers(1, 3),
        st.lists(st.integers(0, 6), min_size=2, max_size=2),
        st.integers(1, 3),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(
    operations=operations,
    sampler=SELECTORS,
    remover=SELECTORS,
    chunk_rows=st.sampled_from([1, 3]),
    max_items=st.integers(1, 20),
    max_times_sampled=st.sampled_from([0, 1, 2]),
)
def test_chunks_live_exactly_as_long_as_somebody_needs_them(
    *, operations: Any, sampler: Any, remover: Any, chunk_rows: int, max_items: int, max_times_sampled: int
) -> None:
    spec = TableSpec(
        name="replay",
        sampler=sampler,
        remover=remover,
        max_items=max_items,
        max_times_sampled=max_times_sampled,
        chunk_rows=chunk_rows,
        rows=ROWS,  # type: ignore[arg-type]
    )
    group, model = TableGroup(spec, seed=1), Model(environments=2, chunk_rows=chunk_rows)
    inserted = 0
    for kind, writer, counts, span in operations:
        table = group.primary
        keys = table.items.key[table.items.live()]
        if kind == "insert":
            entry = model.entry(writer, counts, span, overlap=span - 1)
            assert group.begin(entry)
            inserted += group.admit()
        elif kind == "sample" and table.can_sample(2):
            sampled = table.sample(2)
            assert set(sampled.keys.tolist()) <= set(keys.tolist())
            assert (sampled.probability > 0.0).all()
        elif kind == "update":
            group.update(UpdateEntry(keys=keys[::2], priority=np.arange(len(keys[::2]), dtype=np.float32)))
        elif kind == "delete":
            group.delete(DeleteEntry(keys=keys[:span]))
        elif kind == "restore":
            model.collect(group)
            state = capture(group).packed()
            group = TableGroup(spec, seed=2)
            load_snapshot(group, unpack(pack(state.facts, state.arrays), what="state"))
        model.collect(group)
        table = group.primary
        assert table.size <= max_items
        assert table.limiter.inserted == inserted
        assert model.freed & model.required(table) == set(), "no row is freed that somebody needs"
        assert model.written() - model.freed == model.required(table), "no row stays that nobody needs"
        assert int(np.count_nonzero(group.rows.runs.holders)) == group.rows.runs.alive
        slots, known = table.items.find(table.items.key[table.items.live()])
        assert known.all()
        assert slots.tolist() == table.items.live().tolist()


@settings(max_examples=100, deadline=None)
@given(
    spi=st.sampled_from([0.5, 1.0, 2.5, 8.0]),
    extra=st.floats(0.0, 20.0),
    batch=st.integers(1, 16),
    min_items=st.integers(1, 8),
    choices=st.lists(st.booleans(), max_size=200),
)
def test_an_accepted_ratio_limiter_holds_its_tolerance_and_never_stops_both_sides(
    spi: float, extra: float, batch: int, min_items: int, choices: list[bool]
) -> None:
    tolerance = max(1.0, spi, (batch + spi) / 2) + extra
    limiter = SampleToInsertRatio(samples_per_insert=spi, min_items=min_items, tolerance_items=tolerance)
    spec = TableSpec(name="replay", max_items=8, limiter=limiter, batch_items=batch, rows=ROWS)  # type: ignore[arg-type]
    group, model = TableGroup(spec), Model(environments=1, chunk_rows=1)
    table = group.primary
    for wants_insert in choices:
        waiting = group.admitting is not None
        can_sample = table.can_sample(batch)
        can_insert = not waiting or table.limiter.can_insert(1, size=table.size)
        assert can_insert or can_sample
        if wants_insert and not waiting:
            group.begin(model.entry(1, [3], 1, overlap=0))
            group.admit()
        elif can_sample:
            table.sample(batch)
            group.admit()
        if table.limiter.inserted > min_items:
            assert table.limiter.min_diff <= table.limiter.diff <= table.limiter.max_diff


@settings(max_examples=200, deadline=None)
@given(
    writes=st.lists(
        st.lists(st.tuples(st.integers(0, 36), st.floats(0.0, 1e6)), min_size=1, max_size=10), min_size=1, max_size=10
    ),
    shares=st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=1, max_size=20),
)
def test_a_sum_tree_finds_what_a_running_sum_finds(writes: Any, shares: list[float]) -> None:
    tree, plain = SumTree(37), np.zeros(37)
    for batch in writes:
        slots = np.array([slot for slot, _ in batch])
        weights = np.array([weight for _, weight in batch])
        tree.set(slots, weights)
        for slot, weight in batch:
            plain[slot] = weight
    assert np.isclose(tree.total, plain.sum(), rtol=1e-12)
    if tree.total > 0.0:
        mass = np.array(shares) * tree.total
        found = tree.find(mass)
        assert (plain[found] > 0.0).all()
        upper = np.cumsum(plain)[found]
        slack = 1e-9 * tree.total
        assert (mass <= upper + slack).all()
        assert (mass >= upper - plain[found] - slack).all()


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(st.integers(0, 40), max_size=12), seed=st.integers(0, 9), remover=SELECTORS)
def test_admission_in_any_pieces_gives_the_same_table(cuts: list[int], seed: int, remover: Any) -> None:
    def run(pieces: list[int]) -> list[int]:
        spec = TableSpec(name="replay", remover=remover, max_items=25, limiter=MinSize(), rows=ROWS)  # type: ignore[arg-type]
        group, model = TableGroup(spec, seed=seed), Model(environments=2, chunk_rows=1)
        table = group.primary
        ratio = SampleToInsertRatio(samples_per_insert=1.0, min_items=1, tolerance_items=1.0)
        for _ in range(4):
            assert group.begin(model.entry(1, [10, 10], 1, overlap=0))
            table.limiter.rule = ratio
            for piece in pieces:
                table.limiter.sampled = max(0, table.limiter.inserted - 2 + piece)
                group.admit()
            table.limiter.rule = MinSize()
            group.admit()
        return capture(group).packed().arrays["0.key"].tolist()

    assert run(cuts) == run([])
