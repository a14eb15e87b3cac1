"""Encoded chunks come back as they were, whatever the columns, values and settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.replay.encoding import Codec
from rollstream.spaces import Column, RowSpec

DTYPES = ("|u1", "|i1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "|b1", "|S3")
SHAPES = ((), (1,), (3,), (2, 5), (0,), (1100,))


@dataclass(frozen=True)
class Rows:
    row_spec: RowSpec
    chunk_rows: int
    delta: bool | None


@st.composite
def tables(draw: Any) -> Rows:
    kinds = draw(st.lists(st.tuples(st.sampled_from(DTYPES), st.sampled_from(SHAPES)), min_size=1, max_size=4))
    columns = tuple(Column(name=f"c{at}", dtype=dtype, shape=shape) for at, (dtype, shape) in enumerate(kinds))
    return Rows(RowSpec(columns), draw(st.integers(1, 6)), draw(st.sampled_from([None, True, False])))


@given(table=tables(), chunks=st.integers(0, 4), seed=st.integers(0, 2**32 - 1), noise=st.sampled_from([0, 1, 255]))
@settings(max_examples=150, deadline=None)
def test_chunks_come_back_as_they_were(table: Rows, chunks: int, seed: int, noise: int) -> None:
    generator = np.random.default_rng(seed)
    payload = generator.integers(0, noise + 1, (chunks, table.chunk_rows * table.row_spec.row_bytes), dtype=np.uint8)
    payload += np.arange(chunks, dtype=np.uint8)[:, None]
    before = payload.copy()
    encoded = Codec(table).encode(payload)
    decoded = Codec(Rows(table.row_spec, table.chunk_rows, None)).decode(encoded.values)
    assert (payload == before).all()
    assert decoded.tobytes() == before.tobytes()
    assert encoded.stored_bytes.tolist() == [len(value) for value in encoded.values]
    assert all(len(value) <= payload.shape[1] + 1 for value in encoded.values)
