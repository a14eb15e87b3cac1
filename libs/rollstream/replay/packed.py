"""Named arrays and some facts in one buffer: what a table's snapshot is over HTTP and in a checkpoint.

    magic "RSTS" | layout u4 | header bytes u4 | CRC-32 of header u4 | header (JSON) | arrays, each at a multiple of 64

The header lists name, dtype, shape, offset and CRC-32 of each array. No pickle; arrays are read without copying.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch

__all__ = ["PackedArrays", "pack", "packed_buffers", "unpack"]

LAYOUT_VERSION = 1
PREFIX = np.dtype([("magic", "S4"), ("layout", "<u4"), ("header_bytes", "<u4"), ("header_crc", "<u4")])
ALIGNMENT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedArrays:
    """What was packed: `facts` (JSON values) and `arrays` by name."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]


def pack(facts: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """One buffer with everything in it."""
    return b"".join(packed_buffers(facts, arrays))


def packed_buffers(facts: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> list[Any]:
    """What `pack` gives, as buffers one after another: large arrays are not copied."""
    entries, offset = [], 0
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in contiguous.items():
        entries.append([name, array.dtype.str, list(array.shape), offset, _crc(array)])
        offset = _aligned(offset + array.nbytes)
    header = json.dumps({"facts": facts, "arrays": entries}).encode()
    prefix = np.zeros((), PREFIX)
    prefix["magic"], prefix["layout"] = b"RSTS", LAYOUT_VERSION
    prefix["header_bytes"], prefix["header_crc"] = len(header), zlib.crc32(header)
    parts: list[Any] = [prefix.tobytes(), header, bytes(_aligned(PREFIX.itemsize + len(header)) - PREFIX.itemsize - len(header))]
    for array in contiguous.values():
        parts += [array.reshape(-1).view(np.uint8).data, bytes(_aligned(array.nbytes) - array.nbytes)]
    return parts


def unpack(buffer: bytes | bytearray | memoryview, *, what: str) -> PackedArrays:
    """Read what `pack` wrote; `what` is how errors call it.

    Raises:
        SchemaMismatch: foreign bytes, an unknown layout, cut off, or damaged.
    """
    size = len(buffer)
    if size < PREFIX.itemsize:
        raise SchemaMismatch(f"{what} is {size} bytes long: it was cut off")
    prefix = np.frombuffer(buffer, PREFIX, count=1)[0]
    if prefix["magic"] != b"RSTS" or prefix["layout"] != LAYOUT_VERSION:
        raise SchemaMismatch(
            f"{what} begins with {prefix['magic']!r} layout {prefix['layout']}, this release reads b'RSTS' "
            f"layout {LAYOUT_VERSION}"
        )
    end = PREFIX.itemsize + int(prefix["header_bytes"])
    header = bytes(buffer[PREFIX.itemsize : end])
    if zlib.crc32(header) != prefix["header_crc"]:
        raise SchemaMismatch(f"{what} has a damaged header: its checksum differs")
    content, start = json.loads(header), _aligned(end)
    arrays = {}
    for name, dtype, shape, offset, crc in content["arrays"]:
        count = math.prod(shape)
        if start + offset + count * np.dtype(dtype).itemsize > size:
            raise SchemaMismatch(f"{what} ends before its array {name!r}: it was cut off")
        array = np.frombuffer(buffer, dtype, count=count, offset=start + offset).reshape(shape)
        if _crc(array) != crc:
            raise SchemaMismatch(f"{what} has a damaged array {name!r}: its checksum differs")
        arrays[name] = array
    return PackedArrays(facts=content["facts"], arrays=arrays)


def _crc(array: npt.NDArray[Any]) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data) if array.size else 0


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
