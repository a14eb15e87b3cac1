"""The form of an export: parts one after another, each with its own checksums, so that neither side holds more than one.

    magic "RSEX" | layout u4 | part, part, ..., last part
    part       kind "TABL" "ROWS" "INDX" "LAST" | bytes u8 | packed arrays (`rollstream.replay.packed`, CRC-32 of each)

    TABL  spec, id, how many shards       ROWS  chunks of one shard, as stored       INDX  items of that shard       LAST  counts

A file without its last part was not written to the end. The same bytes are the buffer that a checkpoint keeps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import numpy as np

from rollstream.errors import CheckpointError, SchemaMismatch
from rollstream.replay.packed import PackedArrays, packed_buffers, unpack

__all__ = ["ExportPart", "Kind", "parts_of_buffer", "parts_of_file", "verify_export", "write_file", "written_buffers"]

Kind: TypeAlias = Literal["TABL", "ROWS", "INDX", "LAST"]

LAYOUT_VERSION = 1
START = np.dtype([("magic", "S4"), ("layout", "<u4")])
PART = np.dtype([("kind", "S4"), ("unused", "<u4"), ("bytes", "<u8")])


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPart:
    """One part and its kind."""

    kind: Kind
    content: PackedArrays


def written_buffers(parts: Iterable[ExportPart]) -> Iterator[list[Any]]:
    """The bytes of an export, some buffers for each part; large arrays are not copied."""
    start = np.zeros((), START)
    start["magic"], start["layout"] = b"RSEX", LAYOUT_VERSION
    yield [start.tobytes()]
    for part in parts:
        buffers = packed_buffers(part.content.facts, part.content.arrays)
        head = np.zeros((), PART)
        head["kind"], head["bytes"] = part.kind.encode(), sum(len(buffer) for buffer in buffers)
        yield [head.tobytes(), *buffers]


def write_file(path: Path, parts: Iterable[ExportPart]) -> None:
    """Write an export beside its place, flush it, then rename it, so that a half one never shows under this name.

    A thread writes one part while the next is fetched; it ends with this call.

    Raises:
        CheckpointError: the disk is full or not writable; what was half written is removed.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb", buffering=0) as file, ThreadPoolExecutor(1, thread_name_prefix="export") as thread:
            writing: Future[None] | None = None
            for buffers in written_buffers(parts):
                if writing is not None:
                    writing.result()
                writing = thread.submit(_write, file, buffers)
            if writing is not None:
                writing.result()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise CheckpointError(
            f"cannot write export {path}: {error.strerror}; free or enlarge the disk, or choose another folder. An earlier file of "
            "this name is untouched"
        ) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def parts_of_buffer(buffer: bytes | bytearray | memoryview, *, what: str) -> Iterator[ExportPart]:
    """The parts in a buffer, as views of it, checked to be whole before the first.

    Raises:
        SchemaMismatch: foreign bytes, cut off, or damaged.
    """
    view = memoryview(buffer)
    places = list(_places(len(view), lambda offset, count: bytes(view[offset : offset + count]), what=what))
    yield from _ahead(places, lambda place: _part(place, view[place.offset : place.offset + place.bytes], what))


def parts_of_file(path: Path, *, what: str) -> Iterator[ExportPart]:
    """The parts in a file, two in memory at a time; raises as `parts_of_buffer`, and a `CheckpointError` where it cannot be read."""
    try:
        with path.open("rb", buffering=0) as file:
            places = list(_places(path.stat().st_size, lambda offset, count: _read(file, offset, count), what=what))
            yield from _ahead(places, lambda place: _part(place, _read(file, place.offset, place.bytes), what))
    except OSError as error:
        raise CheckpointError(f"{what} cannot be read: {error.strerror}; exports are files that export_to wrote") from error


def verify_export(path: Path) -> dict[str, Any]:
    """Check every checksum of a file; returns the facts of its last part.

    Raises:
        SchemaMismatch: foreign bytes, cut off, or damaged; says where.
    """
    facts: dict[str, Any] = {}
    for part in parts_of_file(path, what=f"export {path}"):
        if part.kind == "LAST":
            facts = dict(part.content.facts)
    return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    kind: Kind
    offset: int
    bytes: int


def _places(size: int, read: Any, *, what: str) -> Iterator[_Place]:
    """Where the parts are; refuses what is not whole."""
    if size < START.itemsize:
        raise SchemaMismatch(f"{what} is {size} bytes long: it was cut off")
    start = np.frombuffer(read(0, START.itemsize), START)[0]
    if start["magic"] != b"RSEX" or start["layout"] != LAYOUT_VERSION:
        raise SchemaMismatch(
            f"{what} begins with {bytes(start['magic'])!r} layout {start['layout']}, this release reads b'RSEX' layout {LAYOUT_VERSION}; "
            "export the table again with this release"
        )
    offset, kind = START.itemsize, ""
    while kind != "LAST":
        if offset + PART.itemsize > size:
            raise SchemaMismatch(f"{what} ends after {size} bytes without its last part: it is half written or was cut off")
        head = np.frombuffer(read(offset, PART.itemsize), PART)[0]
        kind, count = bytes(head["kind"]).decode("latin-1"), int(head["bytes"])
        offset += PART.itemsize
        if kind not in ("TABL", "ROWS", "INDX", "LAST"):
            raise SchemaMismatch(f"{what} is damaged at byte {offset - PART.itemsize}: no part begins there")
        if offset + count > size:
            raise SchemaMismatch(f"{what} ends after {size} bytes within a part: it is half written or was cut off")
        yield _Place(kind=kind, offset=offset, bytes=count)  # type: ignore[arg-type]
        offset += count


def _ahead(places: list[_Place], read: Callable[[_Place], ExportPart]) -> Iterator[ExportPart]:
    """The parts at `places`; a thread reads and checks the next one while the caller works on this. It ends with the iterator."""
    with ThreadPoolExecutor(1, thread_name_prefix="export") as thread:
        reading = thread.submit(read, places[0])
        for following in places[1:]:
            part = reading.result()
            reading = thread.submit(read, following)
            yield part
        yield reading.result()


def _part(place: _Place, content: bytes | bytearray | memoryview, what: str) -> ExportPart:
    return ExportPart(kind=place.kind, content=unpack(content, what=f"{what}, part at byte {place.offset},"))


def _write(file: BinaryIO, buffers: list[Any]) -> None:
    for buffer in buffers:
        view = memoryview(buffer)
        while view:
            view = view[file.write(view) :]


def _read(file: BinaryIO, offset: int, count: int) -> bytearray:
    content = bytearray(count)
    view, have = memoryview(content), 0
    file.seek(offset)
    while have < count:
        received = file.readinto(view[have:])  # type: ignore[attr-defined]
        if not received:
            raise SchemaMismatch(f"file ends at byte {offset + have}: it was cut off while it was read")
        have += received
    return content
