"""Commands over many chunks: byte for byte what an ordinary client would send."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.store import keys
from rollstream.store.chunk_keys import CommandBuffer
from rollstream.store.raw_connection import pack

PREFIX = keys.chunk_prefix("t", 0)
GENERATOR = np.random.Generator(np.random.PCG64(1))


def spelled(writer: int, env: int, chunk_no: int) -> bytes:
    return keys.chunk_key("t", 0, writer=writer, env=env, chunk_no=chunk_no)


@pytest.mark.parametrize("chunk_bytes", [1, 9, 10, 400])
def test_mset_is_spelled_as_by_an_ordinary_client(chunk_bytes: int) -> None:
    env = np.array([0, 1, 0xFFFFFFFF], np.uint32)
    chunk_no = np.array([0, 0xDEADBEEF, 0xFFFFFFFFFFFFFFFF], np.uint64)
    payload = GENERATOR.integers(0, 256, (3, chunk_bytes), dtype=np.uint8)
    buffer = CommandBuffer(b"MSET", PREFIX, chunk_bytes=chunk_bytes, capacity=4)
    expected: list[bytes] = [b"MSET"]
    for row in range(3):
        expected += [spelled(0xABC, int(env[row]), int(chunk_no[row])), payload[row].tobytes()]
    assert bytes(buffer.fill(0xABC, env, chunk_no, payload)) == pack([tuple(expected)])


def test_mget_takes_a_writer_per_chunk() -> None:
    writer = GENERATOR.integers(0, 1 << 32, 50, dtype=np.uint32)
    env = GENERATOR.integers(0, 1 << 32, 50, dtype=np.uint32)
    chunk_no = GENERATOR.integers(0, 1 << 63, 50, dtype=np.uint64)
    buffer = CommandBuffer(b"MGET", PREFIX, chunk_bytes=None, capacity=50)
    expected = [spelled(int(w), int(e), int(n)) for w, e, n in zip(writer, env, chunk_no, strict=True)]
    assert bytes(buffer.fill(writer, env, chunk_no)) == pack([(b"MGET", *expected)])


def test_values_of_any_size_stand_between_the_keys() -> None:
    env, chunk_no = np.array([3, 5, 7], np.uint32), np.array([4, 6, 8], np.uint64)
    values = [b"one", b"", b"x" * 1000]
    buffer = CommandBuffer(b"MSET", PREFIX, chunk_bytes=None, capacity=4)
    expected = [b"MSET"]
    for row, value in enumerate(values):
        expected += [spelled(9, int(env[row]), int(chunk_no[row])), value]
    assert b"".join(buffer.around(9, env, chunk_no, values)) == pack([tuple(expected)])


def test_a_smaller_command_after_a_larger_one_is_whole() -> None:
    buffer = CommandBuffer(b"MGET", PREFIX, chunk_bytes=None, capacity=1000)
    many = np.arange(1000)
    buffer.fill(1, many.astype(np.uint32), many.astype(np.uint64))
    one = buffer.fill(2, np.array([3], np.uint32), np.array([4], np.uint64))
    assert bytes(one) == pack([(b"MGET", spelled(2, 3, 4))])
