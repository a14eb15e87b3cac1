"""Entries of a table's log: one packed buffer each, decoded without copies.

    i  inserts     header | keep u8[N] | end u8[N] | episode_start u8[E] | start u8[M] | key u8[M]? | episode_env u4[E]
                   | chunk_bytes u4[C]? | env u4[M] | length u4[M]? | version u4[M]? | priority f4[M]? | lead u2[M]? | table u1[M]?
                   | names of tables, separated by blanks
    u  updates     header | key u8[K] | priority f4[K]
    d  deletes     header | key u8[K] | name of the table, for a reset

Columns with ? are left out when one number in the header says the same. A stream entry has one field: its kind is the field's
name, the buffer its value. (writer, sequence) numbers the inserts of one writer without a gap, so an entry that arrives twice is
recognized. Readers refuse a layout version that they do not know.
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

LAYOUT_VERSION = 2
HAS_KEY, HAS_CHUNK_BYTES, HAS_LENGTH, HAS_VERSION, HAS_PRIORITY, HAS_LEAD, HAS_TABLE = (1 << bit for bit in range(7))
MISSING_ROWS, RESET = 1, 2

INSERT_HEADER = np.dtype(
    [
        ("layout", "<u2"),
        ("flags", "<u2"),
        ("writer", "<u4"),
        ("sequence", "<u8"),
        ("environments", "<u4"),
        ("items", "<u4"),
        ("episodes", "<u4"),
        ("chunks", "<u4"),
        ("first_ordinal", "<u4"),
        ("length", "<u4"),
        ("version", "<u4"),
        ("names_bytes", "<u4"),
    ]
)
KEYS_HEADER = np.dtype([("layout", "<u2"), ("flags", "<u2"), ("refused", "<u4"), ("keys", "<u4"), ("name_bytes", "<u4")])


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertEntry:
    """One flush of one writer.

    Attributes:
        keep: per environment [N], the first row that a later entry may still make items of.
        end: per environment [N], how many rows were written so far.
        episode_env, episode_start: [E], the rows among the new ones that begin an episode, environment after environment.
        chunk_bytes: stored size of each new chunk [C], environment after environment; None: all of the table's chunk size.
        first_ordinal: of the keys that are made for items without one of their own, in order.
        start, env, length: items [M]: rows `start`..`start + length - 1` of an environment.
        lead: rows before the core [M]; None: none.
        tables: names of the tables that `table` counts; empty: only the one that the rows belong to.
        table: number of the item's table in `tables` [M]; None: all in the first.
        key: given keys [M], 0 where one is to be made; None: all are made.
        priority: [M], NaN for the highest so far; None: all so.
        version: of the weights that acted in the newest row [M].
    """

    writer: int
    sequence: int
    keep: npt.NDArray[np.uint64]
    end: npt.NDArray[np.uint64]
    start: npt.NDArray[np.uint64]
    env: npt.NDArray[np.uint32]
    length: npt.NDArray[np.uint32]
    version: npt.NDArray[np.uint32]
    episode_env: npt.NDArray[np.uint32]
    episode_start: npt.NDArray[np.uint64]
    first_ordinal: int = 0
    tables: tuple[str, ...] = ()
    chunk_bytes: npt.NDArray[np.uint32] | None = None
    lead: npt.NDArray[np.uint16] | None = None
    table: npt.NDArray[np.uint8] | None = None
    key: npt.NDArray[np.uint64] | None = None
    priority: npt.NDArray[np.float32] | None = None

    @property
    def items(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateEntry:
    """New priorities [K] of keys [K], in whatever table of the row space; `refused`: how many the client refused before sending."""

    keys: npt.NDArray[np.uint64]
    priority: npt.NDArray[np.float32]
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteEntry:
    """Keys [K] of items to remove, in whatever table of the row space; with `missing` because their rows are gone.

    With `reset` it is all items of the table of this name, and keys are not looked at.
    """

    keys: npt.NDArray[np.uint64]
    missing: bool = False
    reset: str = ""


def encode_insert(entry: InsertEntry) -> bytes:
    """The buffer of an insert entry."""
    header = np.zeros((), INSERT_HEADER)
    header["layout"], header["writer"], header["sequence"] = LAYOUT_VERSION, entry.writer, entry.sequence
    header["environments"], header["items"], header["episodes"] = len(entry.keep), entry.items, len(entry.episode_env)
    header["first_ordinal"] = entry.first_ordinal
    flags, parts = (
        0,
        [entry.keep.astype("<u8"), entry.end.astype("<u8"), entry.episode_start.astype("<u8"), entry.start.astype("<u8")],
    )
    if entry.key is not None:
        flags |= HAS_KEY
        parts.append(entry.key.astype("<u8"))
    parts.append(entry.episode_env.astype("<u4"))
    if entry.chunk_bytes is not None:
        flags |= HAS_CHUNK_BYTES
        header["chunks"] = len(entry.chunk_bytes)
        parts.append(entry.chunk_bytes.astype("<u4"))
    parts.append(entry.env.astype("<u4"))
    for name, flag in (("length", HAS_LENGTH), ("version", HAS_VERSION)):
        column = getattr(entry, name)
        if len(column) and (column == column[0]).all():
            header[name] = column[0]
        else:
            flags |= flag
            parts.append(column.astype("<u4"))
    for column, flag, dtype in (
        (entry.priority, HAS_PRIORITY, "<f4"),
        (entry.lead, HAS_LEAD, "<u2"),
        (entry.table, HAS_TABLE, "u1"),
    ):
        if column is not None:
            flags |= flag
            parts.append(column.astype(dtype))
    names = " ".join(entry.tables).encode()
    header["flags"], header["names_bytes"] = flags, len(names)
    return b"".join([header.tobytes(), *(part.tobytes() for part in parts), names])


def decode_insert(buffer: bytes) -> InsertEntry:
    """The insert entry in `buffer`, as views of it; refuses another layout and a wrong size."""
    header = _header(buffer, INSERT_HEADER, kind="insert")
    flags, environments, items = int(header["flags"]), int(header["environments"]), int(header["items"])
    episodes, chunks = int(header["episodes"]), int(header["chunks"])
    item_bytes = 12 + sum(
        size
        for flag, size in (
            (HAS_KEY, 8),
            (HAS_LENGTH, 4),
            (HAS_VERSION, 4),
            (HAS_PRIORITY, 4),
            (HAS_LEAD, 2),
            (HAS_TABLE, 1),
        )
        if flags & flag
    )
    size = INSERT_HEADER.itemsize + 16 * environments + 12 * episodes + (4 * chunks if flags & HAS_CHUNK_BYTES else 0)
    size += items * item_bytes
    _require_size(buffer, size + int(header["names_bytes"]), kind="insert")
    cursor = _Cursor(buffer, INSERT_HEADER.itemsize)

    def optional(flag: int, dtype: str, count: int) -> Any:
        return cursor.take(dtype, count) if flags & flag else None

    keep, end = cursor.take("<u8", environments), cursor.take("<u8", environments)
    episode_start, start = cursor.take("<u8", episodes), cursor.take("<u8", items)
    key = optional(HAS_KEY, "<u8", items)
    episode_env = cursor.take("<u4", episodes)
    chunk_bytes = optional(HAS_CHUNK_BYTES, "<u4", chunks)
    env = cursor.take("<u4", items)
    length, version = optional(HAS_LENGTH, "<u4", items), optional(HAS_VERSION, "<u4", items)
    return InsertEntry(
        writer=int(header["writer"]),
        sequence=int(header["sequence"]),
        keep=keep,
        end=end,
        start=start,
        env=env,
        length=np.full(items, header["length"], np.uint32) if length is None else length,
        version=np.full(items, header["version"], np.uint32) if version is None else version,
        episode_env=episode_env,
        episode_start=episode_start,
        first_ordinal=int(header["first_ordinal"]),
        tables=tuple(buffer[size:].decode().split()),
        chunk_bytes=chunk_bytes,
        priority=optional(HAS_PRIORITY, "<f4", items),
        lead=optional(HAS_LEAD, "<u2", items),
        table=optional(HAS_TABLE, "u1", items),
        key=key,
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
    keys, priority = cursor.take("<u8", count), cursor.take("<f4", count)
    return UpdateEntry(keys=keys, priority=priority, refused=int(header["refused"]))


def encode_delete(entry: DeleteEntry) -> bytes:
    """The buffer of a delete entry."""
    name = entry.reset.encode()
    flags = (MISSING_ROWS if entry.missing else 0) | (RESET if name else 0)
    header = _keys_header(len(entry.keys), refused=0, flags=flags, name_bytes=len(name))
    return header + entry.keys.astype("<u8").tobytes() + name


def decode_delete(buffer: bytes) -> DeleteEntry:
    """The delete entry in `buffer`; refuses as `decode_insert` does."""
    header = _header(buffer, KEYS_HEADER, kind="delete")
    count, flags = int(header["keys"]), int(header["flags"])
    end = KEYS_HEADER.itemsize + 8 * count
    _require_size(buffer, end + int(header["name_bytes"]), kind="delete")
    keys = _Cursor(buffer, KEYS_HEADER.itemsize).take("<u8", count)
    return DeleteEntry(keys=keys, missing=bool(flags & MISSING_ROWS), reset=buffer[end:].decode())


class _Cursor:
    """Takes arrays out of a buffer, one after another, without copying."""

    def __init__(self, buffer: bytes, offset: int) -> None:
        self._buffer = buffer
        self._offset = offset

    def take(self, dtype: str, count: int) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = np.frombuffer(self._buffer, dtype, count=count, offset=self._offset)
        self._offset += array.nbytes
        return array


def _keys_header(count: int, *, refused: int, flags: int, name_bytes: int = 0) -> bytes:
    header = np.zeros((), KEYS_HEADER)
    header["layout"], header["flags"], header["refused"], header["keys"] = LAYOUT_VERSION, flags, refused, count
    header["name_bytes"] = name_bytes
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
