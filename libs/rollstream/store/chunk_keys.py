"""Commands over many chunks as one NumPy buffer: constant parts written once, the numbers of the keys filled in.

    *<n> $4 MSET     then per chunk    $30 rs:{tag}/<writer u4><env u4><chunk number u8> [$<b> <bytes>]
    '-- head --'                       '------------- one record of the array -----------------------'

(each blank stands for the two bytes CR LF)

Only `MSET` of chunks of one size has the part in brackets; `MGET` and `UNLINK` end after the key, and where values are large or
vary in size the bytes between them stand alone. The head is written just before the first record, so that the command is one
contiguous piece of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rollstream.spaces.opaque import opaque
from rollstream.store.keys import CHUNK_KEY_SUFFIX_BYTES

__all__ = ["Buffer", "CommandBuffer"]

Buffer: TypeAlias = bytes | memoryview

_HEAD_ROOM_BYTES = 32
_CRLF = b"\r\n"


class CommandBuffer:
    """Room for one command (`MSET`, `MGET` or `UNLINK`) over up to `capacity` chunks that share a key prefix.

    Args:
        chunk_bytes: size of the value that follows each key; None: the command has keys only.
    """

    def __init__(self, command: bytes, prefix: bytes, *, chunk_bytes: int | None, capacity: int) -> None:
        self.capacity = capacity
        self._command = command
        key_head = b"$%d\r\n%b" % (len(prefix) + CHUNK_KEY_SUFFIX_BYTES, prefix)
        value_head = b"" if chunk_bytes is None else b"$%d\r\n" % chunk_bytes
        fields: list[tuple[Any, ...]] = [
            ("key_head", np.uint8, (len(key_head),)),
            ("writer", ">u4"),
            ("env", ">u4"),
            ("chunk_no", ">u8"),
            ("key_end", np.uint8, (2,)),
        ]
        if chunk_bytes is not None:
            fields += [
                ("value_head", np.uint8, (len(value_head),)),
                ("value", opaque(chunk_bytes)),
                ("value_end", np.uint8, (2,)),
            ]
        self._arguments_per_chunk = 1 if chunk_bytes is None else 2
        dtype = np.dtype(fields)
        self._record_bytes = dtype.itemsize
        self._memory = memoryview(bytearray(_HEAD_ROOM_BYTES + capacity * dtype.itemsize))
        records = np.frombuffer(self._memory, dtype, count=capacity, offset=_HEAD_ROOM_BYTES)
        records["key_head"] = np.frombuffer(key_head, np.uint8)
        records["key_end"] = np.frombuffer(_CRLF, np.uint8)
        if chunk_bytes is not None:
            records["value_head"] = np.frombuffer(value_head, np.uint8)
            records["value_end"] = np.frombuffer(_CRLF, np.uint8)
            self._values = records["value"]
        self._writers, self._envs, self._chunk_nos = records["writer"], records["env"], records["chunk_no"]

    def fill(
        self,
        writer: NDArray[np.uint32] | int,
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
        payload: NDArray[np.uint8] | None = None,
    ) -> memoryview:
        """Write keys (and values) of K <= capacity chunks; returns the bytes of the command, valid until the next `fill`.

        Shapes: writer [K] or one number for all; env, chunk_no [K]; payload [K, chunk_bytes].
        """
        count = len(env)
        self._fill_keys(writer, env, chunk_no)
        if payload is not None and payload.size:
            # one element a chunk, so that each is moved by one memcpy
            self._values[:count] = np.ascontiguousarray(payload).view(self._values.dtype)[:, 0]
        start = self._write_head(count, arguments=self._arguments_per_chunk * count)
        return self._memory[start : _HEAD_ROOM_BYTES + count * self._record_bytes]

    def around(
        self,
        writer: int,
        env: NDArray[np.uint32],
        chunk_no: NDArray[np.uint64],
        values: Sequence[Buffer],
    ) -> list[Buffer]:
        """The command in pieces, with `values` among them as they are: for a buffer without values of its own.

        Valid until the next call; for values that are too large to copy, or that vary in size.
        """
        count = len(values)
        self._fill_keys(writer, env, chunk_no)
        start = self._write_head(count, arguments=2 * count)
        pieces: list[Buffer] = []
        end = _HEAD_ROOM_BYTES
        before: Buffer = b""
        for value in values:
            end += self._record_bytes
            pieces += (before, self._memory[start:end], b"$%d\r\n" % len(value), value)
            start, before = end, _CRLF
        pieces.append(before)
        return pieces

    def _fill_keys(self, writer: NDArray[np.uint32] | int, env: NDArray[np.uint32], chunk_no: NDArray[np.uint64]) -> None:
        count = len(env)
        self._writers[:count] = writer
        self._envs[:count] = env
        self._chunk_nos[:count] = chunk_no

    def _write_head(self, count: int, *, arguments: int) -> int:
        head = b"*%d\r\n$%d\r\n%b\r\n" % (1 + arguments, len(self._command), self._command)
        start = _HEAD_ROOM_BYTES - len(head)
        self._memory[start:_HEAD_ROOM_BYTES] = head
        return start
