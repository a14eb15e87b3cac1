"""The reply to one slice of an `MGET` of chunks of one size: received where it is wanted, copied at most once.

    *<n> CRLF  then per chunk  $<b> CRLF <bytes> CRLF      all of one size, so chunk i stands at a known place
                               $-1 CRLF                    unless it is missing: then its header differs

The bytes of a chunk are cut into pieces, one for each column (and row) that is wanted. Small pieces are received into scratch
memory together with the headers and copied from there, one NumPy call a column; a piece of 16 KiB or more is received in its
place by `recvmsg_into`. As bytes arrive, the headers of the new chunks are compared with the one they must have, all in one
comparison. While all agree, no chunk is missing so far and what is left to receive is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollstream.spaces.opaque import opaque
from rollstream.store.raw_connection import RawConnection

__all__ = ["ChunkReply", "Piece"]

_HEAD_ROOM_BYTES = 16
_DIRECT_BYTES = 16 << 10  # from here on a place of its own in a receive call costs less than a copy
_SLICE_BYTES = 64 << 10  # two of these stay in the processor's cache from the socket to the copy out
_MEDIUM_CHUNK_BYTES = 6 << 10
_MEDIUM_SLICE_BYTES = 128 << 10  # from that size on, fewer calls save more than the nearest cache does
_DIRECT_SLICE_BYTES = 1 << 20  # nothing is copied out, and fewer, longer replies cost both sides less
_SLICE_CHUNKS_MAX = 2048
_RECEIVE_PARTS_MAX = 512  # half of what the kernel takes at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A column of a row: where it begins in the row, and its bytes."""

    name: str
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Direct:
    """A piece that is received in place: which column and row of the chunk, and how much scratch memory comes before it."""

    name: str
    row: int
    scratch_before: int
    bytes: int


class ChunkReply:
    """Receives replies to slices of `capacity` chunks or fewer.

    Args:
        chunk_bytes: size of a chunk.
        rows: rows in a chunk.
        pieces: what is wanted of each row, in order of offset.
    """

    def __init__(self, *, chunk_bytes: int, rows: int, pieces: Sequence[Piece]) -> None:
        self.chunk_bytes = chunk_bytes
        self._rows = rows
        self._pieces = pieces
        header = b"$%d\r\n" % chunk_bytes
        self._record_bytes = len(header) + chunk_bytes + 2
        direct_bytes = sum(piece.bytes for piece in pieces if piece.bytes >= _DIRECT_BYTES)
        slice_bytes = _MEDIUM_SLICE_BYTES if chunk_bytes >= _MEDIUM_CHUNK_BYTES else _SLICE_BYTES
        slice_bytes = _DIRECT_SLICE_BYTES if direct_bytes else slice_bytes
        self.capacity = max(1, min(_SLICE_CHUNKS_MAX, slice_bytes // self._record_bytes))
        self._header_bytes = len(header)
        self._expected = header * self.capacity
        row_bytes = chunk_bytes // rows
        self._scratch_bytes = self._record_bytes - rows * direct_bytes
        self._memory = memoryview(bytearray(_HEAD_ROOM_BYTES + self.capacity * self._scratch_bytes))
        self._headers = self._view(len(header), offset=0)
        self._copied: list[tuple[str, NDArray[Any]]] = []
        self._direct: list[_Direct] = []
        skipped = 0
        for piece in pieces:
            if piece.bytes >= _DIRECT_BYTES:
                skipped += piece.bytes
                continue
            offset = len(header) + piece.offset - skipped
            self._copied.append((piece.name, self._view(piece.bytes, offset=offset, row_stride=row_bytes - direct_bytes)))
        begun = 0
        for row in range(rows):
            for piece in pieces:
                if piece.bytes >= _DIRECT_BYTES:
                    before = len(header) + row * row_bytes + piece.offset - begun - sum(d.bytes for d in self._direct)
                    self._direct.append(_Direct(name=piece.name, row=row, scratch_before=before, bytes=piece.bytes))
                    begun += before

    def receive(self, connection: RawConnection, out: Mapping[str, NDArray[np.void]], part: slice) -> bool:
        """Receive the reply for the chunks `part` into the columns `out`, each V<bytes>[K, rows].

        Returns:
            False when it is not the plain case; then all that was received has been handed to the connection's parser.
        """
        count = part.stop - part.start
        head = b"*%d\r\n" % count
        start = _HEAD_ROOM_BYTES - len(head)
        if self._direct:
            plain = self._receive_in_place(connection, head, self._parts(start, out, part), count)
        else:
            plain = self._receive_together(connection, head, start, count)
        if plain:
            self.copy_out(out, part, count)
        return plain

    def copy_out(self, out: Mapping[str, NDArray[np.void]], part: slice, count: int) -> None:
        """Copy the small pieces of `count` received chunks to their columns."""
        for name, view in self._copied:
            out[name][part] = view[:count]

    def take(self, value: bytes, out: Mapping[str, NDArray[np.void]], index: int) -> None:
        """Put a chunk that came through the parser into its place."""
        rows = np.frombuffer(value, np.uint8).reshape(self._rows, -1)
        for piece in self._pieces:
            part = np.ascontiguousarray(rows[:, piece.offset : piece.offset + piece.bytes])
            out[piece.name][index] = part.view(f"V{piece.bytes}")[:, 0]

    def _view(self, size: int, *, offset: int, row_stride: int | None = None) -> NDArray[np.void]:
        """`size` bytes at `offset` of every chunk (and of every row of it) in scratch memory. Shapes: [capacity(, rows)]."""
        shape = (self.capacity,) if row_stride is None else (self.capacity, self._rows)
        strides = (self._scratch_bytes,) if row_stride is None else (self._scratch_bytes, row_stride)
        return np.ndarray(shape, opaque(size), self._memory, _HEAD_ROOM_BYTES + offset, strides)

    # --- all into scratch memory -----------------------------------------------------------------------------------------

    def _receive_together(self, connection: RawConnection, head: bytes, start: int, count: int) -> bool:
        end = _HEAD_ROOM_BYTES + count * self._record_bytes
        at, checked = start, 0
        while at < end:
            at += connection.receive_into(self._memory[at:end])
            checked = self.headers_right(head, at - start, checked)
            if checked < 0:
                connection.feed(self._memory[start:at])
                return False
        return True

    # --- large pieces in place -------------------------------------------------------------------------------------------

    def _parts(self, start: int, out: Mapping[str, NDArray[np.void]], part: slice) -> list[memoryview]:
        """Where the bytes of the reply go, in the order in which they come."""
        columns = {name: memoryview(out[name][part].reshape(-1).view(np.uint8).data) for name in {d.name for d in self._direct}}
        parts: list[memoryview] = []
        at = _HEAD_ROOM_BYTES
        for index in range(part.stop - part.start):
            end = at + self._scratch_bytes
            for direct in self._direct:
                middle = at + direct.scratch_before
                place = (index * self._rows + direct.row) * direct.bytes
                parts += (self._memory[start:middle], columns[direct.name][place : place + direct.bytes])
                start = at = middle
            at = end
        parts.append(self._memory[start:at])
        return parts

    def _receive_in_place(self, connection: RawConnection, head: bytes, parts: list[memoryview], count: int) -> bool:
        total = len(head) + count * self._record_bytes
        received, checked, first, skip = 0, 0, 0, 0
        while received < total:
            wanted = parts[first : first + _RECEIVE_PARTS_MAX]
            if skip:
                wanted[0] = wanted[0][skip:]
            size = connection.receive_into_parts(wanted)
            received += size
            skip += size
            while first < len(parts) and skip >= len(parts[first]):
                skip -= len(parts[first])
                first += 1
            checked = self.headers_right(head, received, checked)
            if checked < 0:
                for part in parts:
                    connection.feed(part[: max(0, received)])
                    received -= len(part)
                    if received <= 0:
                        break
                return False
        return True

    # --- headers ---------------------------------------------------------------------------------------------------------

    def headers_right(self, head: bytes, received: int, checked: int) -> int:
        """How many headers are there and right, of which the first `checked` are known to be; -1: something is not as it must be."""
        body = received - len(head)
        if checked and body <= checked * self._record_bytes:
            return checked
        if not checked:
            start = _HEAD_ROOM_BYTES - len(head)
            if self._memory[start : start + min(received, len(head))] != head[:received]:
                return -1
            if body <= 0:
                return 0
        size = self._header_bytes
        there = (body + self._record_bytes - size) // self._record_bytes
        if self._headers[checked:there].tobytes() != self._expected[: (there - checked) * size]:
            return -1
        begun = body - there * self._record_bytes
        place = _HEAD_ROOM_BYTES + there * self._scratch_bytes
        return there if begun <= 0 or self._memory[place : place + begun] == self._expected[:begun] else -1
