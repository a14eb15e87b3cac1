"""Reading chunks: `MGET` whose reply has a known layout, received into one buffer and copied out once.

    *<n> CRLF  then per chunk  $<b> CRLF <bytes> CRLF      all of one size, so chunk i stands at a known place
                               $-1 CRLF                    unless it is missing: then its header differs

As bytes arrive, the headers of the new records are compared with the one they must have, all in one comparison. While all
agree, no chunk is missing so far and what is left to receive is known. The first that differs sends the rest of the reply the
slow way, through the ordinary parser. At most two slices, together some 256 KiB, are outstanding: more would only move the
waiting into the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollstream.clock import Clock
from rollstream.errors import SchemaMismatch
from rollstream.store.address import Address
from rollstream.store.chunk_keys import CommandBuffer
from rollstream.store.connection import SOCKET_TIMEOUT_S
from rollstream.store.raw_connection import RawConnection, RawLink, raise_first_error

__all__ = ["ChunkRead", "ChunkReader"]

_SLICE_BYTES = 64 << 10  # two of these stay in the processor's cache from the socket to the copy out
_LARGE_SLICE_BYTES = 128 << 10
_LARGE_SLICE_CHUNKS = 3  # of chunks that are so large that a slice would hold one
_SLICES_OUTSTANDING = 2
_SLICE_CHUNKS_MAX = 2048
_UNLINK_CHUNKS = 4096
_BUFFERS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRead:
    """Chunks in the order asked for. Shapes: payload [K, chunk_bytes] (zeros where missing), missing [K]."""

    payload: NDArray[np.uint8]
    missing: NDArray[np.bool_]


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
        self._buffers: dict[tuple[bytes, bytes], CommandBuffer] = {}
        self._replies: dict[int, _ReplyBuffer] = {}

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
        elif out.shape != (chunks, chunk_bytes) or out.dtype != np.uint8:
            raise SchemaMismatch(f"chunks to read need out u1[{chunks}, {chunk_bytes}], got {out.dtype}{list(out.shape)}")
        missing = np.zeros(chunks, np.bool_)
        if chunks == 0:
            return ChunkRead(payload=out, missing=missing)
        reply = self._reply(chunk_bytes)
        request = self._request(b"MGET", prefix, min(reply.capacity, chunks))
        size = min(request.capacity, reply.capacity)
        slices = [slice(start, min(start + size, chunks)) for start in range(0, chunks, size)]

        def operation(connection: RawConnection) -> None:
            missing[:] = False
            sent = 0
            parsed = False  # whether the parser may hold bytes of the next reply, after one with a missing chunk
            for index, part in enumerate(slices):
                while sent < min(len(slices), index + (1 if parsed else _SLICES_OUTSTANDING)):
                    ahead = slices[sent]
                    connection.send(request.fill(writer[ahead], env[ahead], chunk_no[ahead]))
                    sent += 1
                if parsed or not reply.receive(connection, out[part]):
                    _take_slowly(connection, chunk_bytes, out[part], missing[part])
                    parsed = sent > index + 1

        self._link.attempt("fetch rows", operation)
        return ChunkRead(payload=out, missing=missing)

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

    def _request(self, command: bytes, prefix: bytes, chunks: int) -> CommandBuffer:
        buffer = self._buffers.get((command, prefix))
        if buffer is None or buffer.capacity < chunks:
            if len(self._buffers) >= _BUFFERS_MAX:
                self._buffers.pop(next(iter(self._buffers)))
            buffer = CommandBuffer(command, prefix, chunk_bytes=None, capacity=1 << (chunks - 1).bit_length())
            self._buffers[command, prefix] = buffer
        return buffer

    def _reply(self, chunk_bytes: int) -> _ReplyBuffer:
        reply = self._replies.get(chunk_bytes)
        if reply is None:
            if len(self._replies) >= _BUFFERS_MAX:
                self._replies.pop(next(iter(self._replies)))
            reply = self._replies[chunk_bytes] = _ReplyBuffer(chunk_bytes)
        return reply


class _ReplyBuffer:
    """Memory for the reply to one slice of `capacity` chunks or fewer."""

    def __init__(self, chunk_bytes: int) -> None:
        self._header = np.frombuffer(b"$%d\r\n" % chunk_bytes, np.uint8)
        self._dtype = np.dtype(
            [
                ("header", np.uint8, (len(self._header),)),
                ("chunk", np.uint8, (chunk_bytes,)),
                ("end", np.uint8, (2,)),
            ]
        )
        size = self._dtype.itemsize
        large = min(_LARGE_SLICE_CHUNKS, _LARGE_SLICE_BYTES // size)
        self.capacity = max(1, large, min(_SLICE_CHUNKS_MAX, _SLICE_BYTES // size))
        self._memory = memoryview(bytearray(16 + self.capacity * self._dtype.itemsize))

    def receive(self, connection: RawConnection, out: NDArray[np.uint8]) -> bool:
        """Receive the reply for `out` [n, chunk_bytes] and copy it there.

        Returns:
            False when it is not the plain case; then all that was received has been handed to the connection's parser.
        """
        head = b"*%d\r\n" % len(out)
        records = np.frombuffer(self._memory, self._dtype, count=len(out), offset=len(head))
        total = len(head) + len(out) * self._dtype.itemsize
        received = 0
        checked = 0
        while received < total:
            received += connection.receive_into(self._memory[received:total])
            complete = max(0, received - len(head)) // self._dtype.itemsize
            if not self._as_expected(head, records, received, checked, complete):
                connection.feed(self._memory[:received])
                return False
            checked = complete
        out[...] = records["chunk"]
        return True

    def _as_expected(self, head: bytes, records: NDArray[Any], received: int, checked: int, complete: int) -> bool:
        if checked == 0 and self._memory[: min(received, len(head))] != head[:received]:
            return False
        if not (records["header"][checked:complete] == self._header).all():
            return False
        start = len(head) + complete * self._dtype.itemsize
        begun = self._memory[start : min(received, start + len(self._header))]
        return len(begun) == 0 or begun == self._header[: len(begun)].tobytes()


def _take_slowly(connection: RawConnection, chunk_bytes: int, out: NDArray[np.uint8], missing: NDArray[np.bool_]) -> None:
    """One reply through the ordinary parser, chunk by chunk."""
    replies = connection.replies(1)
    raise_first_error(replies)
    for index, value in enumerate(replies[0]):
        if value is None:
            missing[index] = True
            out[index] = 0
        elif len(value) != chunk_bytes:
            raise SchemaMismatch(
                f"a chunk holds {len(value)} bytes where {chunk_bytes} are expected: reader and writer disagree about the rows"
            )
        else:
            out[index] = np.frombuffer(value, np.uint8)
