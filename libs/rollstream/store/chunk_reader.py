"""Reading chunks: `MGET` whose reply has a known layout, received into one buffer and copied out once, or received in place.

At most two slices are outstanding, one that is received and one that Redis works on: more would only move the waiting into the
kernel. A slice is 64 KiB of small chunks, which stay in the processor's cache until they are copied, 128 KiB of chunks of 6 KiB
or more, or 1 MiB of large ones. Whatever is not the plain case (a missing chunk, an error) goes the slow way, through the ordinary parser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollstream.clock import Clock
from rollstream.errors import SchemaMismatch
from rollstream.spaces.opaque import opaque
from rollstream.store.address import Address
from rollstream.store.chunk_keys import CommandBuffer
from rollstream.store.chunk_reply import ChunkReply, Piece
from rollstream.store.connection import SOCKET_TIMEOUT_S
from rollstream.store.raw_connection import RawConnection, RawLink, raise_first_error

__all__ = ["ChunkRead", "ChunkReader"]

_SLICES_OUTSTANDING = 2
_VALUES_SLICE_BYTES = 64 << 10
_VALUES_SLICE_CHUNKS_FIRST = 32  # before anything is known about the size of values
_SLICE_CHUNKS_MAX = 2048
_UNLINK_CHUNKS = 4096
_BUFFERS_MAX = 64
_WHOLE = "chunk"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRead:
    """Chunks in the order asked for. Shapes: payload [K, chunk_bytes] (zeros where missing), missing [K]."""

    payload: NDArray[np.uint8]
    missing: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Slices of a read that were asked for before it: on which connection, of which chunks, how large and how many."""

    connection: RawConnection
    prefix: bytes
    writer: NDArray[np.uint32]
    env: NDArray[np.uint32]
    chunk_no: NDArray[np.uint64]
    size: int
    sent: int

    def begins(
        self, prefix: bytes, writer: NDArray[np.uint32], env: NDArray[np.uint32], chunk_no: NDArray[np.uint64], *, size: int
    ) -> bool:
        """Whether a read of these chunks in slices of `size` would begin with what was asked for."""
        return (
            self.prefix == prefix
            and self.size == size
            and np.array_equal(self.chunk_no, chunk_no)
            and np.array_equal(self.env, env)
            and np.array_equal(self.writer, writer)
        )


class ChunkReader:
    """One reader's connection for rows. Not thread-safe: one per thread.

    Args:
        deadline_s: how long one `read` or `unlink` tries.
        socket_timeout_s: seconds without a byte after which the connection counts as dead and is made again.
    """

    def __init__(
        self,
        address: Address,
        *,
        clock: Clock,
        deadline_s: float = 30.0,
        socket_timeout_s: float = SOCKET_TIMEOUT_S,
    ) -> None:
        self._link = RawLink(address, clock=clock, deadline_s=deadline_s, socket_timeout_s=socket_timeout_s)
        self._requests: dict[tuple[bytes, bytes], CommandBuffer] = {}
        self._replies: dict[Any, ChunkReply] = {}
        self._mean_value_bytes: dict[bytes, float] = {}
        self._slice_chunks: dict[bytes, int] = {}
        self._asked: _Asked | None = None

    @property
    def deadline_s(self) -> float:
        """How long one `read` or `unlink` tries from now on; may be set."""
        return self._link.deadline_s

    @deadline_s.setter
    def deadline_s(self, deadline_s: float) -> None:
        self._link.deadline_s = deadline_s

    def read(
        self,
        prefix: bytes,
        chunk_bytes: int,
        writer: NDArray[np.uint32],
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
        *,
        out: NDArray[np.uint8] | None = None,
    ) -> ChunkRead:
        """Fetch K chunks of one table shard.

        Shapes: writer, env, chunk_no [K]; out [K, chunk_bytes].

        Args:
            prefix: `keys.chunk_prefix(table_id, shard)`.
            out: where the chunks go; None: a new array.

        Raises:
            SchemaMismatch: a chunk of another size is stored there, or `out` does not fit.
            StoreError, StoreRefused, StoreUnavailable: as `Store.run`.
        """
        chunks = len(chunk_no)
        if out is None:
            out = np.empty((chunks, chunk_bytes), np.uint8)
        elif out.shape != (chunks, chunk_bytes) or out.dtype != np.uint8 or not out.flags.c_contiguous:
            raise SchemaMismatch(f"chunks to read need out u1[{chunks}, {chunk_bytes}], got {out.dtype}{list(out.shape)}")
        reply = self._replies.get(chunk_bytes)
        if reply is None:
            piece = Piece(name=_WHOLE, offset=0, bytes=chunk_bytes)
            reply = self._keep(chunk_bytes, ChunkReply(chunk_bytes=chunk_bytes, rows=1, pieces=[piece]))
        columns = {_WHOLE: np.ndarray((chunks, 1), opaque(chunk_bytes), out)}
        return ChunkRead(payload=out, missing=self._read(prefix, reply, writer, env, chunk_no, columns=columns))

    def read_columns(
        self,
        prefix: bytes,
        dtype: np.dtype[np.void],
        writer: NDArray[np.uint32],
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
        *,
        out: Mapping[str, NDArray[Any]],
        chunk_rows: int = 1,
    ) -> NDArray[np.bool_]:
        """Fetch K chunks, each column of their rows into one contiguous array; returns which are missing [K] (zeros there).

        Shapes: writer, env, chunk_no [K]; out, by column, [K, ...], or [K, chunk_rows, ...] where a chunk has several rows.

        Args:
            prefix: `keys.chunk_prefix(table_id, shard)`.
            dtype: of a row; a chunk is `chunk_rows` of them.
            out: the columns that are wanted; the others are not copied.

        Raises:
            SchemaMismatch: a chunk of another size is stored there, or `out` has a column that the rows do not have, or one of
                another type or shape.
            StoreError, StoreRefused, StoreUnavailable: as `Store.run`.
        """
        chunks = len(chunk_no)
        columns: dict[str, NDArray[np.void]] = {}
        for name, array in out.items():
            field = _field(dtype, name)
            shape = (chunks, *(() if chunk_rows == 1 else (chunk_rows,)), *field.dtype.shape)
            if array.shape != shape or array.dtype != field.dtype.base or not array.flags.c_contiguous:
                raise SchemaMismatch(
                    f"column {name} to read needs a contiguous {field.dtype.base}{list(shape)}, got {array.dtype}{list(array.shape)}"
                )
            if field.dtype.itemsize:
                columns[name] = np.ndarray((chunks, chunk_rows), opaque(field.dtype.itemsize), array)
        key = (dtype, chunk_rows, tuple(columns))
        reply = self._replies.get(key)
        if reply is None:
            fields = [(name, _field(dtype, name)) for name in columns]
            pieces = sorted(
                (Piece(name=name, offset=field.offset, bytes=field.dtype.itemsize) for name, field in fields),
                key=lambda piece: piece.offset,
            )
            reply = self._keep(key, ChunkReply(chunk_bytes=dtype.itemsize * chunk_rows, rows=chunk_rows, pieces=pieces))
        return self._read(prefix, reply, writer, env, chunk_no, columns=columns)

    def ask(self, prefix: bytes, writer: NDArray[np.uint32], env: NDArray[np.uint32], chunk_no: NDArray[np.uint64]) -> None:
        """Let Redis begin with the chunks that the next `read` or `read_columns` will be for, so that it need not wait for all.

        Nothing happens when it is not possible now; and should another read come, the answer is thrown away. The arrays [K] must
        not change meanwhile.
        """
        size, connection = self._slice_chunks.get(prefix), self._link.connection
        if size is None or connection is None or self._asked is not None or not len(chunk_no):
            return
        request, sent = self._request(b"MGET", prefix, min(size, len(chunk_no))), 0
        try:
            for start in range(0, len(chunk_no), size)[:_SLICES_OUTSTANDING]:
                part = slice(start, start + size)
                connection.send(request.fill(writer[part], env[part], chunk_no[part]))
                sent += 1
        except OSError:
            self._link.close()
            return
        self._asked = _Asked(
            connection=connection, prefix=prefix, writer=writer, env=env, chunk_no=chunk_no, size=size, sent=sent
        )

    def read_values(
        self,
        prefix: bytes,
        writer: NDArray[np.uint32],
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
    ) -> list[bytes | None]:
        """Fetch K chunks of varying size; None where one is missing.

        Shapes: writer, env, chunk_no [K].

        Raises:
            StoreError, StoreRefused, StoreUnavailable: as `Store.run`.
        """
        chunks = len(chunk_no)
        if chunks == 0:
            return []
        mean_bytes = self._mean_value_bytes.get(prefix)
        size = _VALUES_SLICE_CHUNKS_FIRST if mean_bytes is None else int(_VALUES_SLICE_BYTES // (mean_bytes + 1))
        size = min(chunks, max(1, min(_SLICE_CHUNKS_MAX, size)))
        request = self._request(b"MGET", prefix, size)
        slices = [slice(start, start + size) for start in range(0, chunks, size)]

        def operation(connection: RawConnection) -> list[bytes | None]:
            self._forget_asked(connection)
            found: list[bytes | None] = []
            sent = 0
            for index in range(len(slices)):
                while sent < min(len(slices), index + _SLICES_OUTSTANDING):
                    ahead = slices[sent]
                    connection.send(request.fill(writer[ahead], env[ahead], chunk_no[ahead]))
                    sent += 1
                replies = connection.replies(1)
                raise_first_error(replies)
                found += replies[0]
            return found

        values = self._link.attempt("fetch rows", operation)
        there = [len(value) for value in values if value is not None]
        if there:
            self._mean_value_bytes[prefix] = sum(there) / len(there)
        return values

    def unlink(
        self,
        prefix: bytes,
        writer: NDArray[np.uint32],
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
    ) -> int:
        """Delete K chunks; returns how many were there (fewer than deleted, when it had to be tried again)."""
        chunks = len(chunk_no)
        if chunks == 0:
            return 0
        request = self._request(b"UNLINK", prefix, min(_UNLINK_CHUNKS, chunks))

        def operation(connection: RawConnection) -> int:
            self._forget_asked(connection)
            deleted = 0
            for start in range(0, chunks, request.capacity):
                part = slice(start, start + request.capacity)
                connection.send(request.fill(writer[part], env[part], chunk_no[part]))
                replies = connection.replies(1)
                raise_first_error(replies)
                deleted += replies[0]
            return deleted

        return self._link.attempt("delete rows", operation)

    def close(self) -> None:
        """Close the connection; the reader connects again when used again."""
        self._link.close()

    def _read(
        self,
        prefix: bytes,
        reply: ChunkReply,
        writer: NDArray[np.uint32],
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
        *,
        columns: Mapping[str, NDArray[np.void]],
    ) -> NDArray[np.bool_]:
        chunks = len(chunk_no)
        missing = np.zeros(chunks, np.bool_)
        if chunks == 0:
            return missing
        request = self._request(b"MGET", prefix, min(reply.capacity, chunks))
        size = min(request.capacity, reply.capacity)
        slices = [slice(start, min(start + size, chunks)) for start in range(0, chunks, size)]
        self._slice_chunks[prefix] = size

        def operation(connection: RawConnection) -> None:
            missing[:] = False
            asked, sent = self._asked, 0
            if asked is not None and asked.connection is connection and asked.begins(prefix, writer, env, chunk_no, size=size):
                self._asked, sent = None, asked.sent
            self._forget_asked(connection)
            parsed = False  # whether the parser may hold bytes of the next reply, after one with a missing chunk
            for index, part in enumerate(slices):
                while sent < min(len(slices), index + (1 if parsed else _SLICES_OUTSTANDING)):
                    ahead = slices[sent]
                    connection.send(request.fill(writer[ahead], env[ahead], chunk_no[ahead]))
                    sent += 1
                if parsed or not reply.receive(connection, columns, part):
                    _take_slowly(connection, reply, columns, part.start, missing)
                    parsed = sent > index + 1

        self._link.attempt("fetch rows", operation)
        return missing

    def _forget_asked(self, connection: RawConnection) -> None:
        """Something else is read now: take the replies that were asked for out of its way."""
        asked, self._asked = self._asked, None
        if asked is not None and asked.connection is connection:
            connection.replies(asked.sent)

    def _request(self, command: bytes, prefix: bytes, chunks: int) -> CommandBuffer:
        buffer = self._requests.get((command, prefix))
        if buffer is None or buffer.capacity < chunks:
            if len(self._requests) >= _BUFFERS_MAX:
                self._requests.pop(next(iter(self._requests)))
            buffer = CommandBuffer(command, prefix, chunk_bytes=None, capacity=1 << (chunks - 1).bit_length())
            self._requests[command, prefix] = buffer
        return buffer

    def _keep(self, key: Any, reply: ChunkReply) -> ChunkReply:
        if len(self._replies) >= _BUFFERS_MAX:
            self._replies.pop(next(iter(self._replies)))
        self._replies[key] = reply
        return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    dtype: np.dtype[Any]
    offset: int


def _field(dtype: np.dtype[np.void], name: str) -> _Field:
    fields: Mapping[str, tuple[Any, ...]] = dtype.fields or {}
    if name not in fields:
        raise SchemaMismatch(f"column {name!r} to read is none of the rows' columns {', '.join(fields)}")
    found = fields[name]
    return _Field(dtype=found[0], offset=found[1])


def _take_slowly(
    connection: RawConnection,
    reply: ChunkReply,
    columns: Mapping[str, NDArray[np.void]],
    start: int,
    missing: NDArray[np.bool_],
) -> None:
    """One reply through the ordinary parser, chunk by chunk."""
    replies: Sequence[Any] = connection.replies(1)
    raise_first_error(replies)
    nothing = bytes(reply.chunk_bytes)
    for index, value in enumerate(replies[0], start):
        missing[index] = value is None
        if value is not None and len(value) != reply.chunk_bytes:
            raise SchemaMismatch(
                f"a chunk holds {len(value)} bytes where {reply.chunk_bytes} are expected: reader and writer disagree about the rows"
            )
        reply.take(nothing if value is None else value, columns, index)
