"""Encoding: chunks come back as they were, damage is told, and frames shrink."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.replay.encoding import Codec
from rollstream.spaces import Column, RowSpec

FRAMES = RowSpec(
    (
        Column(name="observation", dtype="|u1", shape=(40, 40)),
        Column(name="counts", dtype="<i8", shape=(3,)),
        Column(name="ids", dtype="<u2", shape=(600,)),
        Column(name="reward", dtype="<f4"),
    )
)


@dataclass(frozen=True)
class Rows:
    row_spec: RowSpec = FRAMES
    chunk_rows: int = 8
    delta: bool | None = None


def random_chunks(rows: Rows, *, chunks: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (chunks, rows.chunk_rows * rows.row_spec.row_bytes), dtype=np.uint8)


def moving_chunks(rows: Rows, *, chunks: int = 5) -> np.ndarray:
    """Rows as an environment would write them: integers that wrap around, a dot that moves over a texture."""
    values = np.zeros((chunks, rows.chunk_rows), rows.row_spec.dtype)
    number = np.arange(chunks * rows.chunk_rows).reshape(chunks, rows.chunk_rows)
    values["observation"] = np.random.default_rng(1).integers(0, 256, (40, 40))
    values["observation"].reshape(-1, 1600)[np.arange(number.size), number.reshape(-1) % 1600] = 255
    values["counts"] = (number[..., None] - 20) * np.array([1, -(2**62), 2**33])
    values["ids"] = (number[..., None] * 9000 + np.arange(600)) % 65_536
    values["reward"] = number
    return values.reshape(-1).view(np.uint8).reshape(chunks, -1)


@pytest.mark.parametrize("delta", [None, True, False])
@pytest.mark.parametrize("chunk_rows", [1, 2, 8])
@pytest.mark.parametrize("make", [random_chunks, moving_chunks])
def test_chunks_come_back_as_they_were(make, chunk_rows: int, delta: bool | None) -> None:  # type: ignore[no-untyped-def]
    rows = Rows(chunk_rows=chunk_rows, delta=delta)
    payload = make(rows)
    before = payload.copy()
    values = Codec(rows).encode(payload)
    assert (payload == before).all(), "what was given is not changed"
    assert values.stored_bytes.tolist() == [len(value) for value in values.values]
    assert (Codec(rows).decode(values.values) == before).all()
    columns = Codec(rows).decode_columns(values.values)
    stored = before.reshape(-1).view(FRAMES.dtype).reshape(5, chunk_rows)
    assert list(columns) == list(FRAMES.dtype.names or ())
    assert all(column.tobytes() == stored[name].tobytes() for name, column in columns.items())


def test_a_reader_needs_no_setting_of_the_writer() -> None:
    payload = moving_chunks(Rows())
    for delta in (None, True, False):
        assert (Codec(Rows(delta=False)).decode(Codec(Rows(delta=delta)).encode(payload).values) == payload).all()


def test_values_of_writers_with_other_settings_are_read_in_one_batch() -> None:
    payloads = [moving_chunks(Rows()), random_chunks(Rows()), moving_chunks(Rows())]
    parts = [Codec(Rows(delta=delta)).encode(payload) for delta, payload in zip((True, None, False), payloads, strict=True)]
    assert (Codec(Rows()).decode([value for part in parts for value in part.values]) == np.concatenate(payloads)).all()


def test_data_that_cannot_be_compressed_grows_by_one_byte() -> None:
    payload = random_chunks(Rows())
    assert Codec(Rows()).encode(payload).stored_bytes.tolist() == [payload.shape[1] + 1] * len(payload)


def test_no_chunks_are_no_values() -> None:
    values = Codec(Rows()).encode(np.zeros((0, 8 * FRAMES.row_bytes), np.uint8))
    assert len(values.values) == len(values.stored_bytes) == 0
    assert Codec(Rows()).decode([]).shape == (0, 8 * FRAMES.row_bytes)


def test_differences_are_kept_only_where_they_make_chunks_smaller() -> None:
    rows = Rows(row_spec=RowSpec((Column(name="observation", dtype="|u1", shape=(64, 64)),)))
    random = np.random.default_rng(0)
    still = np.zeros((4, 8), rows.row_spec.dtype)
    still["observation"] = random.integers(0, 256, (4, 1, 64, 64))  # a texture: zstd finds it again without differences
    for step in range(8):
        still["observation"][:, step, step * 8 : step * 8 + 8, :8] = 0
    brighter = np.zeros((4, 8), rows.row_spec.dtype)
    brighter["observation"] = random.integers(0, 256, (4, 1, 64, 64)) + 3 * np.arange(8)[:, None, None]  # all pixels change
    for values, taken in ((still, False), (brighter, True)):
        payload = values.reshape(-1).view(np.uint8).reshape(4, -1)
        sizes = {
            delta: int(Codec(replace(rows, delta=delta)).encode(payload).stored_bytes.sum()) for delta in (None, True, False)
        }
        assert sizes[None] == min(sizes[True], sizes[False])
        assert (sizes[True] < sizes[False]) == taken


def damaged(value: bytes, place: int, *, by: int = 255) -> bytes:
    changed = bytearray(value)
    changed[place] ^= by
    return bytes(changed)


def test_a_damaged_value_is_named() -> None:
    codec = Codec(Rows())
    values = codec.encode(moving_chunks(Rows())).values
    values[3] = damaged(values[3], len(values[3]) // 2)
    with pytest.raises(SchemaMismatch, match=r"table t, chunk 3 is damaged: .*; its rows cannot be read"):
        codec.decode(values, name="table t, chunk {}".format)


def test_one_changed_bit_anywhere_is_noticed() -> None:
    codec = Codec(Rows())
    [value] = codec.encode(moving_chunks(Rows(), chunks=1)).values
    for place in np.linspace(0, len(value) - 1, 40).astype(int):
        for bit in range(8):
            with pytest.raises(SchemaMismatch, match=r"value 0 (is damaged|begins with the header byte)"):
                codec.decode([damaged(value, place, by=1 << bit)])


def test_a_value_that_was_cut_off_is_named() -> None:
    codec = Codec(Rows())
    [value] = codec.encode(moving_chunks(Rows(), chunks=1)).values
    for size in (1, 5, len(value) // 2, len(value) - 12):
        with pytest.raises(SchemaMismatch, match="value 0 is damaged: (it was cut off|.*size.*); its rows cannot be read"):
            codec.decode([value[:size]])


def test_a_chunk_of_other_rows_is_refused() -> None:
    short = Rows(chunk_rows=4)
    for make in (moving_chunks, random_chunks):
        for reader, expected in ((Rows(chunk_rows=8), 22664), (Rows(chunk_rows=2), 5666)):
            with pytest.raises(
                SchemaMismatch, match=f"holds 11332 bytes where {expected} are expected: reader and writer disagree"
            ):
                Codec(reader).decode(Codec(short).encode(make(short)).values)


@pytest.mark.parametrize("header", [0b1101_0010, 0b0010_1101, 0xFF, 0x00])
def test_an_unknown_header_is_refused(header: int) -> None:
    values = Codec(Rows()).encode(moving_chunks(Rows(), chunks=2)).values
    values[1] = bytes([header]) + values[1][1:]
    with pytest.raises(SchemaMismatch, match=f"value 1 begins with the header byte {header}, which this release does not know"):
        Codec(Rows()).decode(values)


def test_an_empty_value_is_refused() -> None:
    values = Codec(Rows()).encode(moving_chunks(Rows(), chunks=1)).values
    with pytest.raises(SchemaMismatch, match="value 1 is empty: a zstd table stores a header byte"):
        Codec(Rows()).decode([*values, b""])
