"""The message of an edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.edges import SCHEMA, decode_batch, encode_batch, read_prologue
from rollstream.errors import SchemaMismatch
from rollstream.spaces import Batch, Episodes

HASH = "0123456789abcdef"


def batch(**columns: Any) -> Batch:
    return Batch(
        columns=columns,
        env_steps=6,
        version=3,
        newest_version=4,
        actor="actor-1",
        episodes=Episodes(returns=np.array([1.5, -2.0, 3.0]), lengths=np.array([1, 3, 5])),
        metrics={"entropy": 0.5},
    )


def encoded(content: Batch) -> bytes:
    return encode_batch(content, spec_hash=HASH, writer=7, sequence=11, shape=(3, 2))


def test_what_was_encoded_is_decoded() -> None:
    sent = batch(
        **{"observation.camera": np.arange(6 * 4 * 4, dtype=np.uint8).reshape(6, 4, 4)},
        action=np.arange(6, dtype=np.int64),
        reward=np.linspace(0, 1, 6, dtype=np.float32),
        done=np.array([True, False] * 3),
    )
    message = decode_batch(encoded(sent))
    assert (message.writer, message.sequence, message.spec_hash, message.shape) == (7, 11, HASH, (3, 2))
    got = message.batch
    assert (got.env_steps, got.version, got.newest_version, got.actor, got.sequence) == (6, 3, 4, "actor-1", 11)
    assert got.metrics == {"entropy": 0.5}
    np.testing.assert_array_equal(got.episodes.returns, sent.episodes.returns)
    np.testing.assert_array_equal(got.episodes.lengths, sent.episodes.lengths)
    assert list(got.columns) == list(sent.columns)
    for name, column in sent.columns.items():
        assert got.columns[name].dtype == column.dtype
        np.testing.assert_array_equal(got.columns[name], column)


def test_decoding_copies_no_column() -> None:
    buffer = encoded(batch(observation=np.ones((6, 100), np.float32)))
    column = decode_batch(buffer).batch.columns["observation"]
    whole = np.frombuffer(buffer, np.uint8)
    assert np.shares_memory(column, whole)
    assert not column.flags.writeable


def test_arrays_start_at_multiples_of_64_bytes() -> None:
    buffer = encoded(batch(a=np.ones(6, np.uint8), b=np.ones((6, 3), np.float64), c=np.ones(6, np.float32)))
    start = np.frombuffer(buffer, np.uint8).__array_interface__["data"][0]
    for column in decode_batch(buffer).batch.columns.values():
        assert (column.__array_interface__["data"][0] - start) % 64 == 0


def test_columns_that_are_not_contiguous_or_big_endian_arrive_as_values() -> None:
    rows = np.zeros(6, dtype=[("x", "<f4", (2,)), ("y", "<i4")])
    rows["x"] = np.arange(12).reshape(6, 2)
    message = decode_batch(encoded(batch(x=rows["x"], big=np.arange(6, dtype=">i4"))))
    np.testing.assert_array_equal(message.batch.columns["x"], rows["x"])
    np.testing.assert_array_equal(message.batch.columns["big"], np.arange(6))


def test_a_batch_of_counts_only_has_no_columns() -> None:
    content = Batch(columns={}, env_steps=128, version=1, newest_version=1)
    message = decode_batch(encode_batch(content, spec_hash="", writer=1, sequence=1))
    assert (message.batch.env_steps, message.batch.rows, message.spec_hash, len(message.batch.episodes)) == (128, 0, "", 0)


def test_a_batch_without_rows_keeps_its_columns() -> None:
    content = Batch(columns={"observation": np.zeros((0, 4), np.float32)}, env_steps=0, version=1, newest_version=1)
    message = decode_batch(encode_batch(content, spec_hash=HASH, writer=1, sequence=1))
    assert message.batch.columns["observation"].shape == (0, 4)


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match=r"column b has shape \[5\] in a batch of 6 rows; all need the same first axis"):
        encoded(batch(a=np.zeros(6), b=np.zeros(5)))


def test_objects_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="column a has dtype object; an edge carries booleans, integers and floats"):
        encoded(batch(a=np.array([None] * 6)))


@pytest.mark.parametrize("garbage", [b"", b"hello", b"\x80\x04\x95pickle" * 10, bytes(4_096)])
def test_what_is_no_message_is_refused(garbage: bytes) -> None:
    with pytest.raises(SchemaMismatch, match="not an edge message"):
        decode_batch(garbage)
    assert read_prologue(garbage) is None


def test_a_message_that_was_cut_off_is_refused() -> None:
    buffer = encoded(batch(a=np.zeros(6)))
    for length in range(0, len(buffer), 7):
        with pytest.raises(SchemaMismatch, match="not an edge message"):
            decode_batch(buffer[:length])


def test_a_column_that_is_no_number_is_refused() -> None:
    buffer = encoded(batch(a=np.zeros(6, np.float32)))
    with pytest.raises(SchemaMismatch, match=r"damaged after the prologue: column 'a' has dtype '\|O4'"):
        decode_batch(buffer.replace(b"<f4", b"|O4"))


def test_the_prologue_tells_whose_message_it_is_in_any_schema_version() -> None:
    buffer = bytearray(encoded(batch(a=np.zeros(6))))
    buffer[4:6] = (SCHEMA + 1).to_bytes(2, "little")
    prologue = read_prologue(bytes(buffer))
    assert prologue is not None
    assert (prologue.schema, prologue.writer, prologue.sequence, prologue.readable) == (SCHEMA + 1, 7, 11, False)
