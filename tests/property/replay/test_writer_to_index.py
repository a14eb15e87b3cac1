"""What a writer cuts is what the index of a shard holds: any rules, tables, chunks and flushes, also flushes that come twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.replay import Pattern, TableGroup, TableSpec, step
from rollstream.replay.cut_items import ExplicitItems
from rollstream.replay.flush_entry import TableRules, entry_of
from rollstream.replay.item_keys import make_keys
from rollstream.replay.log import DeleteEntry, decode_insert, encode_insert
from rollstream.replay.open_rows import OpenRows
from rollstream.replay.rules import EachRow, Episode, NStep, Sequence
from rollstream.spaces import Column, Flag, RowSpec

ROWS = RowSpec((Column(name="observation", dtype="<f4"),))
ENVIRONMENTS, WRITER, KEPT = 2, 9, 3

rules = st.sampled_from(
    [
        NStep(2, history=1),
        Sequence(3, 2, burn_in=2, tail="aligned"),
        Episode(4),
        EachRow(priority=2.0),
        Pattern({"pair": step["observation"][-3:-1]}, history=1),
    ]
)


def flags_of(lengths: list[int], *, final: bool) -> list[int]:
    flags: list[int] = []
    for length in lengths:
        flags += [int(Flag.FIRST), *[0] * (length - 1), *([int(Flag.FINAL | Flag.TRUNCATED)] if final else [])]
    return flags


@settings(max_examples=200, deadline=None)
@given(
    first=st.lists(rules, min_size=1, max_size=2),
    second=st.lists(rules, max_size=2),
    chunk_rows=st.integers(1, 3),
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=5),
    final=st.booleans(),
    encoded=st.booleans(),
    pieces=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans(), st.booleans()), min_size=1, max_size=10),
)
def test_the_index_holds_every_item_and_lets_go_of_every_chunk(
    *,
    first: list[Any],
    second: list[Any],
    chunk_rows: int,
    lengths: list[int],
    final: bool,
    encoded: bool,
    pieces: list[tuple[int, int, bool, bool]],
) -> None:
    spec = TableSpec(name="first", max_items=10_000, rows=ROWS, chunk_rows=chunk_rows)
    group = TableGroup(spec)
    group.attach(TableSpec(name="second", max_items=10_000, rows=ROWS, chunk_rows=chunk_rows, rows_of="first"))
    tables = TableRules.of("first", rule=None, tables={"second": second, "first": first})
    state = OpenRows(ROWS.dtype, environments=ENVIRONMENTS, rule=tables.rules, chunk_rows=chunk_rows, keep_rows=KEPT + chunk_rows)
    stream = flags_of(lengths, final=final)
    at = [0] * ENVIRONMENTS
    ordinal, chunks = 0, 0
    expected: dict[int, tuple[Any, ...]] = {}
    closing: list[tuple[int, int, bool, bool] | None] = [*pieces, None]
    for sequence, piece in enumerate(closing, start=1):
        counts = piece[:2] if piece else (0, 0)
        parts = [stream[at[env] : at[env] + count] for env, count in enumerate(counts)]
        rows = np.zeros(sum(map(len, parts)), ROWS.dtype)
        rows["flags"] = [flag for part in parts for flag in part]
        rows["version"] = sequence
        at = [start + len(part) for start, part in zip(at, parts, strict=True)]
        explicit = None
        if piece and piece[2] and at[1] >= 1:
            count = min(KEPT, at[1])
            explicit = ExplicitItems(
                env=np.array([1]),
                start=np.array([at[1] - count]),
                length=np.array([count]),
                table=np.zeros(1, np.uint8),
                key=make_keys(0, WRITER, ordinal, 1),
                priority=np.array([0.5], np.float32),
            )
            ordinal += 1
        cut = state.cut(rows, np.cumsum([0, *map(len, parts)]), closing=piece is None, explicit=explicit)
        sizes = np.full(len(cut.chunk_no), 7, np.uint32) if encoded else None
        entry = decode_insert(
            encode_insert(entry_of(cut, writer=WRITER, sequence=sequence, first_ordinal=ordinal, rules=tables, chunk_bytes=sizes))
        )
        state.advance(cut)
        chunks += len(cut.chunk_no)
        assert group.begin(entry)
        assert group.admit() == entry.items
        if piece and piece[3]:
            assert not group.begin(entry), "a flush that comes twice changes nothing"
        keys = np.concatenate([make_keys(0, WRITER, ordinal, cut.items.made), cut.items.rest.key])
        ordinal += cut.items.made
        lead = np.zeros(len(cut.items), np.uint16) if cut.items.lead is None else cut.items.lead
        for key, table, *item in zip(
            keys.tolist(),
            tables.tables_of(cut.items).tolist(),
            cut.item_env,
            cut.start,
            cut.length,
            lead,
            cut.items.version,
            strict=True,
        ):
            expected[key] = (tables.names[table], *map(int, item))
    assert not [name for name in ("entries_refused", "items_without_rows", "items_without_table") if group.rows.counters[name]]
    held = {}
    for name, table in group.tables.items():
        found = table.items.key[table.items.live()]
        told, known = table.get(found)
        assert known.all()
        assert (told.writer == WRITER).all()
        for key, *item in zip(found.tolist(), told.env, told.start, told.length, told.lead, told.version, strict=True):
            held[key] = (name, *map(int, item))
    assert held == expected
    for name in group.tables:
        group.delete(DeleteEntry(keys=np.zeros(0, np.uint64), reset=name))
    group.forget_writer(WRITER)
    garbage = len(group.take_garbage())
    assert garbage == chunks, (first, second, chunk_rows, lengths, final, pieces)
