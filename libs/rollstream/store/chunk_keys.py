"""Commands over many chunks as one NumPy buffer: constant parts written once, hex keys by table lookup.

    *<n> $4 MSET     then per chunk    $<k> rs:{t.0}:wwwwwwww:eeeeeeee:nnnnnnnnnnnnnnnn [$<b> <bytes>]
    '-- head --'                       '---------------- one record of the array --------------------'

(each blank stands for the two bytes CR LF)

Only MSET has the part in brackets; MGET and UNLINK end after the key. The head is written just before the first record, so that
the command is one contiguous piece of memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollstream.store.keys import CHUNK_KEY_SUFFIX_BYTES

__all__ = ["CommandBuffer"]

_HEAD_ROOM_BYTES = 32


def _hex_table() -> NDArray[np.uint32]:
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    number = np.arange(1 << 16)
    table = np.stack([digits[(number >> shift) & 15] for shift in (12, 8, 4, 0)], axis=1)
    return np.ascontiguousarray(table).view(np.uint32)[:, 0]


_HEX = _hex_table()
"""16-bit number -> its four hex digits, as the four bytes of a u32."""


def _hex(numbers: NDArray[Any], big_endian: str) -> NDArray[np.uint32]:
    """Hex digits of `numbers`, four a word. Shapes: [K] -> [K, 2] for u4, [K, 4] for u8."""
    halves: NDArray[Any] = np.ascontiguousarray(numbers, big_endian).view(">u2")
    return _HEX.take(halves).reshape(len(numbers), -1)


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
            ("writer", np.uint32, (2,)),
            ("colon_1", np.uint8),
            ("env", np.uint32, (2,)),
            ("colon_2", np.uint8),
            ("chunk_no", np.uint32, (4,)),
            ("key_end", np.uint8, (2,)),
        ]
        if chunk_bytes is not None:
            fields += [
                ("value_head", np.uint8, (len(value_head),)),
                ("value", np.uint8, (chunk_bytes,)),
                ("value_end", np.uint8, (2,)),
            ]
        self._arguments_per_chunk = 1 if chunk_bytes is None else 2
        dtype = np.dtype(fields)
        self._record_bytes = dtype.itemsize
        self._memory = memoryview(bytearray(_HEAD_ROOM_BYTES + capacity * dtype.itemsize))
        self._records = np.frombuffer(self._memory, dtype, count=capacity, offset=_HEAD_ROOM_BYTES)
        self._records["key_head"] = np.frombuffer(key_head, np.uint8)
        self._records["colon_1"] = self._records["colon_2"] = ord(":")
        self._records["key_end"] = np.frombuffer(b"\r\n", np.uint8)
        if chunk_bytes is not None:
            self._records["value_head"] = np.frombuffer(value_head, np.uint8)
            self._records["value_end"] = np.frombuffer(b"\r\n", np.uint8)

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
        records = self._records[:count]
        if isinstance(writer, int):
            records["writer"] = _hex(np.array([writer], np.uint32), ">u4")
        else:
            records["writer"] = _hex(writer, ">u4")
        records["env"] = _hex(env, ">u4")
        records["chunk_no"] = _hex(chunk_no, ">u8")
        if payload is not None:
            records["value"] = payload
        head = b"*%d\r\n$%d\r\n%b\r\n" % (1 + self._arguments_per_chunk * count, len(self._command), self._command)
        start = _HEAD_ROOM_BYTES - len(head)
        self._memory[start:_HEAD_ROOM_BYTES] = head
        return self._memory[start : _HEAD_ROOM_BYTES + count * self._record_bytes]
