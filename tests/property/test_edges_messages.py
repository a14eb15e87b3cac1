"""Laws of edge messages: what goes in comes out, and nothing else than a message is ever taken for one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as stnp

from rollstream.edges import decode_batch, encode_batch
from rollstream.errors import SchemaMismatch
from rollstream.spaces import Batch, Episodes

DTYPES = st.sampled_from(["|b1", "|u1", "|i1", "<i2", "<u2", "<i4", "<f2", "<f4", "<i8", "<f8"])


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    rows = draw(st.integers(0, 5))
    names = draw(st.lists(st.text(min_size=1, max_size=12), unique=True, max_size=4))
    columns = {name: draw(stnp.arrays(draw(DTYPES), (rows, *draw(st.lists(st.integers(0, 3), max_size=2))))) for name in names}
    returns = draw(st.lists(st.floats(allow_nan=False), max_size=4))
    return Batch(
        columns=columns,
        env_steps=draw(st.integers(0, 2**40)),
        version=draw(st.integers(0, 2**32 - 1)),
        newest_version=draw(st.integers(0, 2**32 - 1)),
        actor=draw(st.text(max_size=10)),
        episodes=Episodes(returns=np.array(returns, np.float64), lengths=np.arange(len(returns), dtype=np.int64)),
        metrics=draw(st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False), max_size=3)),
    )


@settings(max_examples=150, deadline=None)
@given(sent=batches(), writer=st.integers(0, 2**32 - 1), sequence=st.integers(1, 2**63))
def test_what_goes_in_comes_out(sent: Batch, writer: int, sequence: int) -> None:
    message = decode_batch(encode_batch(sent, spec_hash="ab" * 8, writer=writer, sequence=sequence, shape=(3, 4)))
    got = message.batch
    assert (message.writer, message.sequence, got.sequence) == (writer, sequence, sequence)
    assert (got.env_steps, got.version, got.newest_version, got.actor) == (
        sent.env_steps, sent.version, sent.newest_version, sent.actor,
    )  # fmt: skip
    assert dict(got.metrics) == dict(sent.metrics)
    assert got.episodes.returns.tolist() == sent.episodes.returns.tolist()
    assert list(got.columns) == list(sent.columns)
    for name, column in sent.columns.items():
        assert got.columns[name].shape == column.shape
        assert got.columns[name].tobytes() == column.tobytes()


@settings(max_examples=200, deadline=None)
@given(sent=batches(), data=st.data())
def test_a_damaged_message_is_refused_or_decoded_but_never_anything_else(sent: Batch, data: st.DataObject) -> None:
    buffer = bytearray(encode_batch(sent, spec_hash="ab" * 8, writer=1, sequence=1))
    for _ in range(data.draw(st.integers(1, 4))):
        buffer[data.draw(st.integers(0, len(buffer) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(buffer[: data.draw(st.integers(0, len(buffer)))])
    try:
        decode_batch(damaged)
    except SchemaMismatch:
        pass


@settings(max_examples=100, deadline=None)
@given(garbage=st.binary(max_size=200))
def test_random_bytes_are_no_message(garbage: bytes) -> None:
    with pytest.raises(SchemaMismatch, match="not an edge message"):
        decode_batch(garbage)
