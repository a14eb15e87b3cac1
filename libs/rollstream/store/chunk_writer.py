"""Writing chunks: many rows and the log entry that points at them, in one send.

    MSET 512 KiB of chunks ─ MSET ... ─ MULTI ─ MSET ─ XADD log ─ EXEC ─▶ Redis ─▶ +OK ... <id>

A large write is several MSETs, so that none of them fills memory twice or keeps the server from others for long. The last one and
the extra commands are a transaction, which is sent off only when the earlier MSETs have succeeded. So a server that runs out
of memory in between never has a log entry without its rows. What fits into one MSET, as most writes do, is one send. Chunks
are immutable and keys fixed, so the whole is simply sent again when the connection is lost; the extra commands must bear that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollstream.clock import Clock
from rollstream.errors import SchemaMismatch
from rollstream.store.address import Address
from rollstream.store.chunk_keys import CommandBuffer
from rollstream.store.connection import SOCKET_TIMEOUT_S
from rollstream.store.raw_connection import Command, RawConnection, RawLink, pack, raise_first_error

__all__ = ["ChunkWriter"]

_SLICE_BYTES = 512 << 10
_SLICE_CHUNKS_MAX = 4096
_BUFFERS_MAX = 16
_MULTI = pack([(b"MULTI",)])


class ChunkWriter:
    """One writer's connection for rows. Not thread-safe: one per thread.

    Args:
        deadline_s: how long one `write` tries.
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
        self._buffers: dict[tuple[bytes, int], CommandBuffer] = {}

    def write(
        self,
        prefix: bytes,
        writer: int,
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
        payload: NDArray[np.uint8],
        *,
        then: Sequence[Command] = (),
    ) -> list[Any]:
        """Store K chunks, then run the commands `then`; returns the replies of `then`.

        Shapes: env, chunk_no [K]; payload [K, chunk_bytes]; K may be 0.

        Args:
            prefix: `keys.chunk_prefix(table_id, shard)`.
            then: commands that bear repetition and do not block, e.g. the `XADD` of the log entry.

        Raises:
            SchemaMismatch: the arrays do not fit together.
            StoreError, StoreRefused, StoreUnavailable: as `Store.run`; some chunks may have been stored, but `then` has
                not been executed (or its replies were lost).
        """
        if payload.ndim != 2 or payload.dtype != np.uint8 or not len(env) == len(chunk_no) == len(payload):
            raise SchemaMismatch(
                f"chunks to write need env [K], chunk_no [K] and payload u1[K, chunk_bytes], got {env.shape}, "
                f"{chunk_no.shape} and {payload.dtype}{payload.shape}"
            )
        closing = pack([*then, (b"EXEC",)]) if then else b""
        chunks = len(env)
        buffer = self._buffer(prefix, payload.shape[1], chunks)
        slices = [slice(start, start + buffer.capacity) for start in range(0, chunks, buffer.capacity)]

        def operation(connection: RawConnection) -> list[Any]:
            for part in slices[:-1]:
                connection.send(buffer.fill(writer, env[part], chunk_no[part], payload[part]))
            last = [buffer.fill(writer, env[part], chunk_no[part], payload[part]) for part in slices[-1:]]
            if not then:
                connection.send(*last)
                raise_first_error(connection.replies(len(slices)))
                return []
            if len(slices) > 1:
                connection.send(_MULTI, *last)
                raise_first_error(connection.replies(len(slices) + 1))
                connection.send(closing)
                queued = connection.replies(len(then))
            else:
                connection.send(_MULTI, *last, closing)
                queued = connection.replies(1 + len(slices) + len(then))
            executed = connection.replies(1)
            raise_first_error(queued)
            raise_first_error(executed)
            raise_first_error(executed[0])
            return list(executed[0][len(last) :])

        return self._link.attempt("store rows", operation)

    def close(self) -> None:
        """Close the connection; the writer connects again when used again."""
        self._link.close()

    def _buffer(self, prefix: bytes, chunk_bytes: int, chunks: int) -> CommandBuffer:
        largest = max(1, min(_SLICE_CHUNKS_MAX, _SLICE_BYTES // (chunk_bytes + 64)))
        buffer = self._buffers.get((prefix, chunk_bytes))
        if buffer is None or buffer.capacity < min(chunks, largest):
            if len(self._buffers) >= _BUFFERS_MAX:
                self._buffers.pop(next(iter(self._buffers)))
            capacity = min(largest, 1 << max(0, chunks - 1).bit_length())
            buffer = CommandBuffer(b"MSET", prefix, chunk_bytes=chunk_bytes, capacity=capacity)
            self._buffers[prefix, chunk_bytes] = buffer
        return buffer
