"""Writing chunks: many rows and the log entry that points at them, in one send.

    MSET 1 MiB of chunks ─ MSET ... ─ MULTI ─ MSET ─ XADD log ─ EXEC ─▶ Redis ─▶ +OK ... <id>

A large write is several MSETs, so that none of them fills memory twice or keeps the server from others for long. The last one and
the extra commands are a transaction, which is sent off only when the earlier MSETs have succeeded. So a server that runs out
of memory in between never has a log entry without its rows. What fits into one MSET, as most writes do, is one send. Chunks
are immutable and keys fixed, so the whole is simply sent again when the connection is lost; the extra commands must bear that.

Small chunks are copied into the command; large ones, and those of varying size, are sent from where they lie.

`begin` does not wait for the server: one write may be under way while the caller makes the next one.

    begin(1): pack, send ─▶ ............ begin(2): pack ─ wait for 1 ─ send ─▶ ............ settle(): wait for 2
                            Redis stores 1                                     Redis stores 2

The next command is made while Redis works, but it is sent only when the one before has succeeded. With two on the way a server
without memory could refuse the first and take the second, and the log would have a gap that the shard takes for a loss.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rollstream.clock import Clock
from rollstream.errors import SchemaMismatch
from rollstream.store.address import Address
from rollstream.store.chunk_keys import Buffer, CommandBuffer
from rollstream.store.connection import SOCKET_TIMEOUT_S
from rollstream.store.raw_connection import Command, RawConnection, RawLink, pack, raise_first_error

__all__ = ["ChunkWriter", "PendingWrite"]

_SLICE_BYTES = 1 << 20
_SLICE_CHUNKS_MAX = 2048
_LARGE_CHUNK_BYTES = 64 << 10  # from here on sending from where it lies costs less than a copy
_BUFFERS_MAX = 16
_MULTI = pack([(b"MULTI",)])

_Slice: TypeAlias = Callable[[], list[Buffer]]
"""Makes one MSET; its memory is valid until the next one is made."""


@dataclass(slots=True, kw_only=True, eq=False)
class PendingWrite:
    """A write that `begin` has sent off; `settle`, or the next write, finishes it."""

    replies: list[Any] | None = None
    """Replies of `then`, once the server is known to have done all of it; None before."""

    @property
    def settled(self) -> bool:
        """Whether the server is known to have done it."""
        return self.replies is not None


@dataclass(slots=True, kw_only=True)
class _Sent:
    """What is needed to finish a write, or to send it again: its memory stays as it is until then."""

    pending: PendingWrite
    command: list[Buffer]
    sets: int
    then: int
    turn: int
    connection: RawConnection | None = None


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
        self._buffers: dict[tuple[bytes, int | None, int], CommandBuffer] = {}
        self._sent: _Sent | None = None
        self._turn = 0  # commands of two writes may be in memory: the one under way and the one being made

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
        """Store K chunks of one size, then run the commands `then`; returns the replies of `then`.

        Shapes: env, chunk_no [K]; payload [K, chunk_bytes]; K may be 0.

        Args:
            prefix: `keys.chunk_prefix(table_id, shard)`.
            then: commands that bear repetition and do not block, e.g. the `XADD` of the log entry.

        Raises:
            SchemaMismatch: the arrays do not fit together.
            StoreError, StoreRefused, StoreUnavailable: as `Store.run`; some chunks may have been stored, but `then` has
                not been executed (or its replies were lost).
        """
        _require_rows(env, chunk_no, payload)
        self.settle()
        return self._store(self._slices_of_one_size(prefix, writer, env, chunk_no, payload), then)

    def write_values(
        self,
        prefix: bytes,
        writer: int,
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
        values: Sequence[Buffer],
        *,
        then: Sequence[Command] = (),
    ) -> list[Any]:
        """As `write`, for chunks of varying size: bytes or (one-dimensional, contiguous) memoryviews of bytes.

        Shapes: env, chunk_no, values [K]; K may be 0.

        Raises:
            SchemaMismatch: not as many values as keys.
            StoreError, StoreRefused, StoreUnavailable: as `write`.
        """
        _require_values(env, chunk_no, values)
        self.settle()
        return self._store(self._slices_of_values(prefix, writer, env, chunk_no, values), then)

    def begin(
        self,
        prefix: bytes,
        writer: int,
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
        payload: NDArray[np.uint8],
        *,
        then: Sequence[Command] = (),
    ) -> PendingWrite:
        """As `write`, but do not wait for the server; `.replies` of what is returned are there after `settle` or the next write.

        At most one write is under way: this one is packed, then the one before is finished, then this one is sent. The arrays
        are the caller's again on return. A write that is too large for one command, or of chunks of 64 KiB or more, is finished
        before this returns.

        Raises:
            SchemaMismatch: the arrays do not fit together.
            StoreError, StoreRefused, StoreUnavailable: the write *before* could not be finished (then `unsettled` still is that
                one, and this one was not sent), or this one could not be sent (then `unsettled` is None). In both cases the call
                may be repeated as it was.
        """
        _require_rows(env, chunk_no, payload)
        self._take_turn()
        large = payload.shape[1] >= _LARGE_CHUNK_BYTES
        return self._begin(self._slices_of_one_size(prefix, writer, env, chunk_no, payload), then, large=large)

    def begin_values(
        self,
        prefix: bytes,
        writer: int,
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
        values: Sequence[Buffer],
        *,
        then: Sequence[Command] = (),
    ) -> PendingWrite:
        """As `begin`, for chunks of varying size, as in `write_values`."""
        _require_values(env, chunk_no, values)
        self._take_turn()
        large = sum(map(len, values)) >= _LARGE_CHUNK_BYTES * max(1, len(values))
        return self._begin(self._slices_of_values(prefix, writer, env, chunk_no, values), then, large=large)

    @property
    def unsettled(self) -> PendingWrite | None:
        """The write that is under way: sent, but not known to be done."""
        return self._sent.pending if self._sent is not None else None

    def settle(self) -> None:
        """Wait until the write under way is done; when the connection was lost, it is sent again.

        Raises:
            StoreError, StoreRefused, StoreUnavailable: as `write`. The write stays under way, and the next call tries again.
        """
        sent = self._sent
        if sent is None:
            return

        def operation(connection: RawConnection) -> list[Any]:
            if connection is not sent.connection:
                connection.send(*sent.command)
            return _executed(connection, sets=sent.sets, then=sent.then)

        sent.pending.replies = self._link.attempt("store rows", operation)
        self._sent = None

    def close(self) -> None:
        """Close the connection; the writer connects again when used again. Does not wait for a write under way."""
        self._link.close()

    # --- sending ---------------------------------------------------------------------------------------------------------

    def _take_turn(self) -> None:
        """Use the memory that the write under way does not use."""
        if self._sent is not None:
            self._turn = 1 - self._sent.turn

    def _begin(self, slices: Sequence[_Slice], then: Sequence[Command], *, large: bool) -> PendingWrite:
        if len(slices) > 1 or large:
            self.settle()
            return PendingWrite(replies=self._store(slices, then))
        pieces = [piece for part in slices for piece in part()]
        command: list[Buffer] = [b"".join(pieces)] if len(pieces) > 1 else pieces
        if then:
            command = [_MULTI, *command, pack([*then, (b"EXEC",)])]
        sent = _Sent(pending=PendingWrite(), command=command, sets=len(slices), then=len(then), turn=self._turn)
        self.settle()

        def operation(connection: RawConnection) -> None:
            connection.send(*command)
            sent.connection = connection

        if command:
            self._link.attempt("store rows", operation)
        self._sent = sent
        return sent.pending

    def _store(self, slices: Sequence[_Slice], then: Sequence[Command]) -> list[Any]:
        closing = pack([*then, (b"EXEC",)]) if then else b""

        def operation(connection: RawConnection) -> list[Any]:
            for part in slices[:-1]:
                connection.send(*part())
            last = [piece for part in slices[-1:] for piece in part()]
            if not then:
                connection.send(*last)
                return _executed(connection, sets=len(slices), then=0)
            if len(slices) == 1 or not slices:
                connection.send(_MULTI, *last, closing)
                return _executed(connection, sets=len(slices), then=len(then))
            connection.send(_MULTI, *last)
            raise_first_error(connection.replies(len(slices) + 1))
            connection.send(closing)
            return _executed(connection, sets=1, then=len(then), queued=len(then))

        return self._link.attempt("store rows", operation)

    # --- cutting into commands -------------------------------------------------------------------------------------------

    def _slices_of_one_size(
        self, prefix: bytes, writer: int, env: NDArray[np.uint32], chunk_no: NDArray[np.uint64], payload: NDArray[np.uint8]
    ) -> list[_Slice]:
        chunks, chunk_bytes = payload.shape
        largest = max(1, min(_SLICE_CHUNKS_MAX, _SLICE_BYTES // (chunk_bytes + 64)))
        if chunk_bytes >= _LARGE_CHUNK_BYTES:
            rows = np.ascontiguousarray(payload)
            values = [memoryview(row) for row in rows]
            bounds = [*range(0, chunks, largest), chunks]
            return self._around(prefix, writer, env, chunk_no, values, bounds=bounds)
        buffer = self._buffer(prefix, chunk_bytes, min(chunks, largest), capacity_max=largest)
        parts = [slice(start, start + buffer.capacity) for start in range(0, chunks, buffer.capacity)]

        def slice_of(part: slice) -> _Slice:
            return lambda: [buffer.fill(writer, env[part], chunk_no[part], payload[part])]

        return [slice_of(part) for part in parts]

    def _slices_of_values(
        self, prefix: bytes, writer: int, env: NDArray[np.uint32], chunk_no: NDArray[np.uint64], values: Sequence[Buffer]
    ) -> list[_Slice]:
        bounds = [0]
        size = 0
        for index, value in enumerate(values):
            size += len(value) + 64
            if (size > _SLICE_BYTES and index > bounds[-1]) or index - bounds[-1] >= _SLICE_CHUNKS_MAX:
                bounds.append(index)
                size = len(value) + 64
        if len(values):
            bounds.append(len(values))
        return self._around(prefix, writer, env, chunk_no, values, bounds=bounds)

    def _around(
        self,
        prefix: bytes,
        writer: int,
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
        values: Sequence[Buffer],
        *,
        bounds: Sequence[int],
    ) -> list[_Slice]:
        if len(bounds) < 2:
            return []
        parts = [slice(start, end) for start, end in itertools.pairwise(bounds)]
        buffer = self._buffer(prefix, None, max(part.stop - part.start for part in parts), capacity_max=_SLICE_CHUNKS_MAX)

        def slice_of(part: slice) -> _Slice:
            return lambda: buffer.around(writer, env[part], chunk_no[part], values[part])

        return [slice_of(part) for part in parts]

    def _buffer(self, prefix: bytes, chunk_bytes: int | None, chunks: int, *, capacity_max: int) -> CommandBuffer:
        buffer = self._buffers.get((prefix, chunk_bytes, self._turn))
        if buffer is None or buffer.capacity < chunks:
            if len(self._buffers) >= _BUFFERS_MAX:
                self._buffers.pop(next(iter(self._buffers)))
            capacity = min(capacity_max, 1 << max(0, chunks - 1).bit_length())
            buffer = CommandBuffer(b"MSET", prefix, chunk_bytes=chunk_bytes, capacity=capacity)
            self._buffers[prefix, chunk_bytes, self._turn] = buffer
        return buffer


def _executed(connection: RawConnection, *, sets: int, then: int, queued: int | None = None) -> list[Any]:
    """Replies of `then`, after those of `sets` MSETs (with `then`, in a transaction, whose first `queued` replies are `QUEUED`)."""
    if not then:
        raise_first_error(connection.replies(sets))
        return []
    accepted = connection.replies(1 + sets + then if queued is None else queued)
    executed = connection.replies(1)
    raise_first_error(accepted)
    raise_first_error(executed)
    raise_first_error(executed[0])
    return list(executed[0][sets:])


def _require_rows(env: NDArray[np.uint32], chunk_no: NDArray[np.uint64], payload: NDArray[np.uint8]) -> None:
    if payload.ndim != 2 or payload.dtype != np.uint8 or not len(env) == len(chunk_no) == len(payload):
        raise SchemaMismatch(
            f"chunks to write need env [K], chunk_no [K] and payload u1[K, chunk_bytes], got {env.shape}, "
            f"{chunk_no.shape} and {payload.dtype}{payload.shape}"
        )


def _require_values(env: NDArray[np.uint32], chunk_no: NDArray[np.uint64], values: Sequence[Buffer]) -> None:
    if not len(env) == len(chunk_no) == len(values):
        raise SchemaMismatch(
            f"values to write need env [K], chunk_no [K] and K values, got {env.shape}, {chunk_no.shape} and {len(values)} values"
        )
