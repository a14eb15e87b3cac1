"""Replies that come in any pieces: received whole where they are plain, handed on byte for byte where they are not."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from rollstream.store.chunk_reply import ChunkReply, Piece
from rollstream.store.raw_connection import RawConnection

PIECES = {
    "small": (Piece(name="a", offset=0, bytes=1), Piece(name="b", offset=3, bytes=40)),
    "large": (
        Piece(name="a", offset=1, bytes=4),
        Piece(name="b", offset=5, bytes=20_000),
        Piece(name="c", offset=20_010, bytes=7),
    ),
    "only large": (Piece(name="b", offset=0, bytes=17_000), Piece(name="c", offset=17_000, bytes=18_000)),
}
ROW_BYTES = {"small": 45, "large": 20_020, "only large": 35_000}


class Splitter:
    """Stands where a connection does: gives out a reply in pieces of the sizes asked for, then of any size."""

    def __init__(self, reply: bytes, sizes: list[int]) -> None:
        self._reply = reply
        self._sizes = sizes
        self.fed = b""

    def receive_into(self, buffer: memoryview) -> int:
        return self.receive_into_parts([buffer])

    def receive_into_parts(self, parts: list[memoryview]) -> int:
        assert self._reply, "no more is received than was sent"
        size = min(self._sizes.pop(0) if self._sizes else 1 << 30, len(self._reply), sum(map(len, parts)))
        left = memoryview(self._reply)[:size]
        for part in parts:
            part[: len(left)] = left[: len(part)]
            left = left[len(part) :]
        self._reply = self._reply[size:]
        return size

    def feed(self, received: memoryview) -> None:
        self.fed += bytes(received)


def reply_to(chunks: NDArray[np.uint8], missing: set[int]) -> bytes:
    spelled = (
        b"$-1\r\n" if i in missing else b"$%d\r\n%b\r\n" % (chunks.shape[1], row.tobytes()) for i, row in enumerate(chunks)
    )
    return b"*%d\r\n" % len(chunks) + b"".join(spelled)


def columns(kind: str, chunks: int, rows: int) -> dict[str, NDArray[Any]]:
    return {piece.name: np.zeros((chunks, rows), f"V{piece.bytes}") for piece in PIECES[kind]}


def receive(
    reply: bytes, sizes: list[int], kind: str, rows: int, *, out: dict[str, NDArray[Any]], part: slice
) -> tuple[bool, bytes]:
    layout = ChunkReply(chunk_bytes=ROW_BYTES[kind] * rows, rows=rows, pieces=PIECES[kind])
    splitter = Splitter(reply, sizes)
    return layout.receive(cast(RawConnection, splitter), out, part), splitter.fed


@pytest.mark.parametrize("kind", ["small", "large", "only large"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_pieces_of_any_size_make_the_same_columns(kind: str, rows: int, seed: int) -> None:
    generator = np.random.Generator(np.random.PCG64(seed))
    count = int(generator.integers(1, 12))
    chunks = generator.integers(0, 256, (count, ROW_BYTES[kind] * rows), dtype=np.uint8)
    largest = (1, 7, 50, 1_000, 30_000, 100_000)[seed]
    sizes = generator.integers(1, largest + 1, 500).tolist()
    out = columns(kind, count + 5, rows)
    plain, fed = receive(reply_to(chunks, set()), sizes, kind, rows, out=out, part=slice(3, 3 + count))
    assert plain
    assert fed == b""
    stored = chunks.reshape(count, rows, -1)
    for piece in PIECES[kind]:
        found = out[piece.name].view(np.uint8).reshape(count + 5, rows, piece.bytes)
        np.testing.assert_array_equal(found[3 : 3 + count], stored[:, :, piece.offset : piece.offset + piece.bytes])
        assert not found[:3].any()
        assert not found[3 + count :].any()


@pytest.mark.parametrize("kind", ["small", "large", "only large"])
@pytest.mark.parametrize("missing", [{0}, {4}, {7}, set(range(8))])
@pytest.mark.parametrize("largest", [1, 3, 5_000, 100_000])
def test_a_reply_with_a_missing_chunk_is_handed_on_as_far_as_it_was_received(kind: str, missing: set[int], largest: int) -> None:
    generator = np.random.Generator(np.random.PCG64(largest))
    chunks = generator.integers(0, 256, (8, ROW_BYTES[kind]), dtype=np.uint8)
    reply = reply_to(chunks, missing)
    sizes = generator.integers(1, largest + 1, 500).tolist()
    plain, fed = receive(reply, sizes, kind, 1, out=columns(kind, 8, 1), part=slice(0, 8))
    assert not plain
    assert reply.startswith(fed)
    assert fed != b""


def test_an_error_is_handed_on_whole() -> None:
    for kind in PIECES:
        plain, fed = receive(b"-ERR no\r\n", [], kind, 1, out=columns(kind, 4, 1), part=slice(0, 4))
        assert not plain
        assert fed == b"-ERR no\r\n"


def test_a_chunk_that_came_through_the_parser_is_put_in_its_place() -> None:
    layout = ChunkReply(chunk_bytes=2 * ROW_BYTES["large"], rows=2, pieces=PIECES["large"])
    chunk = np.random.Generator(np.random.PCG64(0)).integers(0, 256, (2, ROW_BYTES["large"]), dtype=np.uint8)
    out = columns("large", 3, 2)
    layout.take(chunk.tobytes(), out, 1)
    for piece in PIECES["large"]:
        assert out[piece.name][1].tobytes() == chunk[:, piece.offset : piece.offset + piece.bytes].tobytes()
        assert not out[piece.name][[0, 2]].view(np.uint8).any()
