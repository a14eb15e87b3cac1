"""Entries of a table's log: one packed buffer each, decoded without copies.

    i  inserts     header | keep u8[N] | end u8[N] | start u8[M] | env u4[M] | length u4[M] | priority f4[M]
    u  updates     header | key u8[K] | priority f4[K]
    d  deletes     header | key u8[K]

A stream entry has one field: its kind is the field's name, the buffer its value. (writer, sequence) numbers the inserts of one
writer without a gap, so an entry that arrives twice is recognized. Readers refuse a layout version that they do not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch

__all__ = [
    "DeleteEntry",
    "InsertEntry",
    "UpdateEntry",
    "decode_delete",
    "decode_insert",
    "decode_update",
    "encode_delete",
    "encode_insert",
    "encode_update",
]

LAYOUT_VERSION = 1
DEFAULT_PRIORITY = 1

INSERT_HEADER = np.dtype(
    [("layout", "<u2"), ("flags", "<u2"), ("writer", "<u4"), ("sequence", "<u8"), ("environments", "<u4"), ("items", "<u4")]
)
KEYS_HEADER = np.dtype([("layout", "<u2"), ("flags", "<u2"), ("refused", "<u4"), ("keys", "<u4"), ("unused", "<u4")])


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertEntry:
    """One flush of one writer.

    Attributes:
        keep: per environment [N], the first row that a later entry may still make items of.
        end: per environment [N], how many rows were written so far.
        env, start, length: items [M]: rows `start`..`start + length - 1` of an environment.
        priority: of items [M]; ignored when `default_priority`: then they get the highest priority so far.
    """

    writer: int
    sequence: int
    default_priority: bool
    keep: npt.NDArray[np.uint64]
    end: npt.NDArray[np.uint64]
    start: npt.NDArray[np.uint64]
    env: npt.NDArray[np.uint32]
    length: npt.NDArray[np.uint32]
    priority: npt.NDArray[np.float32]

    @property
    def items(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateEntry:
    """New priorities [K] of keys [K]; `refused`: how many the client refused before sending, for the counter."""

    keys: npt.NDArray[np.uint64]
    priority: npt.NDArray[np.float32]
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteEntry:
    """Keys [K] of items to remove; with `missing` because their rows are gone."""

    keys: npt.NDArray[np.uint64]
    missing: bool = False


def encode_insert(entry: InsertEntry) -> bytes:
    """The buffer of an insert entry."""
    header = np.zeros((), INSERT_HEADER)
    header["layout"], header["flags"] = LAYOUT_VERSION, DEFAULT_PRIORITY if entry.default_priority else 0
    header["writer"], header["sequence"] = entry.writer, entry.sequence
    header["environments"], header["items"] = len(entry.keep), entry.items
    columns = (
        entry.keep.astype("<u8"),
        entry.end.astype("<u8"),
        entry.start.astype("<u8"),
        entry.env.astype("<u4"),
        entry.length.astype("<u4"),
        entry.priority.astype("<f4"),
    )
    return b"".join([header.tobytes(), *(column.tobytes() for column in columns)])


def decode_insert(buffer: bytes) -> InsertEntry:
    """The insert entry in `buffer`, as views of it; refuses another layout and a wrong size."""
    header = _header(buffer, INSERT_HEADER, kind="insert")
    environments, items = int(header["environments"]), int(header["items"])
    _require_size(buffer, INSERT_HEADER.itemsize + 16 * environments + 20 * items, kind="insert")
    cursor = _Cursor(buffer, INSERT_HEADER.itemsize)
    return InsertEntry(
        writer=int(header["writer"]),
        sequence=int(header["sequence"]),
        default_priority=bool(header["flags"] & DEFAULT_PRIORITY),
        keep=cursor.take("<u8", environments),
        end=cursor.take("<u8", environments),
        start=cursor.take("<u8", items),
        env=cursor.take("<u4", items),
        length=cursor.take("<u4", items),
        priority=cursor.take("<f4", items),
    )


def encode_update(entry: UpdateEntry) -> bytes:
    """The buffer of an update entry."""
    header = _keys_header(len(entry.keys), refused=entry.refused, flags=0)
    return b"".join([header, entry.keys.astype("<u8").tobytes(), entry.priority.astype("<f4").tobytes()])


def decode_update(buffer: bytes) -> UpdateEntry:
    """The update entry in `buffer`; refuses as `decode_insert` does."""
    header = _header(buffer, KEYS_HEADER, kind="update")
    count = int(header["keys"])
    _require_size(buffer, KEYS_HEADER.itemsize + 12 * count, kind="update")
    cursor = _Cursor(buffer, KEYS_HEADER.itemsize)
    return UpdateEntry(keys=cursor.take("<u8", count), priority=cursor.take("<f4", count), refused=int(header["refused"]))


def encode_delete(entry: DeleteEntry) -> bytes:
    """The buffer of a delete entry."""
    return _keys_header(len(entry.keys), refused=0, flags=int(entry.missing)) + entry.keys.astype("<u8").tobytes()


def decode_delete(buffer: bytes) -> DeleteEntry:
    """The delete entry in `buffer`; refuses as `decode_insert` does."""
    header = _header(buffer, KEYS_HEADER, kind="delete")
    count = int(header["keys"])
    _require_size(buffer, KEYS_HEADER.itemsize + 8 * count, kind="delete")
    cursor = _Cursor(buffer, KEYS_HEADER.itemsize)
    return DeleteEntry(keys=cursor.take("<u8", count), missing=bool(header["flags"]))


class _Cursor:
    """Takes arrays out of a buffer, one after another, without copying."""

    def __init__(self, buffer: bytes, offset: int) -> None:
        self._buffer = buffer
        self._offset = offset

    def take(self, dtype: str, count: int) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = np.frombuffer(self._buffer, dtype, count=count, offset=self._offset)
        self._offset += array.nbytes
        return array


def _keys_header(count: int, *, refused: int, flags: int) -> bytes:
    header = np.zeros((), KEYS_HEADER)
    header["layout"], header["flags"], header["refused"], header["keys"] = LAYOUT_VERSION, flags, refused, count
    return header.tobytes()


def _header(buffer: bytes, dtype: np.dtype[np.void], *, kind: str) -> np.void:
    if len(buffer) < dtype.itemsize:
        raise SchemaMismatch(f"log entry of kind {kind} is {len(buffer)} bytes long, its header alone needs {dtype.itemsize}")
    header: np.void = np.frombuffer(buffer, dtype, count=1)[0]
    if header["layout"] != LAYOUT_VERSION:
        raise SchemaMismatch(
            f"log entry of kind {kind} has layout version {header['layout']}, this release reads {LAYOUT_VERSION}; "
            "run the same release on writers and replay shards"
        )
    return header


def _require_size(buffer: bytes, size: int, *, kind: str) -> None:
    if len(buffer) != size:
        raise SchemaMismatch(f"log entry of kind {kind} is {len(buffer)} bytes long where its header announces {size}")
