"""The form of an export: what is half, foreign or damaged is refused, with a word on where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rollstream.errors import CheckpointError, SchemaMismatch
from rollstream.replay.export_parts import (
    ExportPart,
    parts_of_buffer,
    parts_of_file,
    verify_export,
    write_file,
    written_buffers,
)
from rollstream.replay.packed import PackedArrays


def parts() -> Iterator[ExportPart]:
    yield ExportPart(kind="TABL", content=PackedArrays(facts={"shards": 1}, arrays={}))
    for begin in (0, 100):
        rows = {"number": np.arange(begin, begin + 100), "payload": np.zeros((100, 3), np.uint8)}
        yield ExportPart(kind="ROWS", content=PackedArrays(facts={"shard": 0}, arrays=rows))
    yield ExportPart(kind="LAST", content=PackedArrays(facts={"items": 200}, arrays={}))


def whole() -> bytes:
    return b"".join(bytes(buffer) for buffers in written_buffers(parts()) for buffer in buffers)


def test_parts_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "table.export"
    write_file(path, parts())
    assert path.read_bytes() == whole()
    for found in (list(parts_of_buffer(whole(), what="export")), list(parts_of_file(path, what="export"))):
        assert [part.kind for part in found] == ["TABL", "ROWS", "ROWS", "LAST"]
        assert found[2].content.arrays["number"].tolist() == list(range(100, 200))
    assert verify_export(path) == {"items": 200}
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.export"]


def test_a_half_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    data = whole()
    for size in (5, 200, len(data) // 2, len(data) - 1):
        path = tmp_path / "half"
        path.write_bytes(data[:size])
        with pytest.raises(SchemaMismatch, match="it was cut off|half written or was cut off"):
            verify_export(path)
    last = len(data) - len(b"".join(bytes(buffer) for buffer in list(written_buffers(parts()))[-1]))
    with pytest.raises(SchemaMismatch, match="without its last part: it is half written or was cut off"):
        list(parts_of_buffer(data[:last], what="export"))


def test_one_changed_byte_is_found(tmp_path: Path) -> None:
    data = bytearray(whole())
    place = data.index(np.arange(100, 102).tobytes())
    data[place] ^= 1
    path = tmp_path / "changed"
    path.write_bytes(data)
    with pytest.raises(SchemaMismatch, match="part at byte .* has a damaged array 'number': its checksum differs"):
        verify_export(path)
    data[8:12] = b"JUNK"
    with pytest.raises(SchemaMismatch, match="is damaged at byte 8: no part begins there"):
        list(parts_of_buffer(data, what="export"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nowhere cannot be read: No such file or directory; exports are files"):
        verify_export(tmp_path / "nowhere")


def test_foreign_bytes_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="begins with b'PK.*this release reads b'RSEX' layout 1; export the table again"):
        list(parts_of_buffer(b"PK\x03\x04" + bytes(200), what="export"))


def test_what_could_not_be_written_leaves_the_earlier_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "table.export"
    write_file(path, parts())

    def failing() -> Iterator[ExportPart]:
        yield from list(parts())[:2]
        raise OSError(28, "No space left on device")

    with pytest.raises(CheckpointError, match="cannot write export .*No space left on device; free or enlarge the disk"):
        write_file(path, failing())

    def interrupted() -> Iterator[ExportPart]:
        yield from list(parts())[:2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_file(path, interrupted())
    assert verify_export(path) == {"items": 200}
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.export"]


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shrinking"
    path.write_bytes(whole())
    reading = parts_of_file(path, what="export")
    next(reading)
    path.write_bytes(whole()[:400])
    with pytest.raises(SchemaMismatch, match="it was cut off while it was read"):
        list(reading)
