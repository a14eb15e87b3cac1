"""How a chunk of a table with encoding `zstd` is stored: regrouped by column, optionally as differences, compressed.

    rows       f v o o o r   f v o o o r   f v o o o r        as they are written and, decoded, as they are read
    regrouped  f f f  v v v  o o o  o o o  o o o  r r r       equal things side by side
    delta      f f f  v v v  o o o  +/-    +/-    r r r       integers of a row minus those of the row before it, modulo 2**bits
    value      header u1 | zstd frame with its checksum       or the regrouped bytes as they are, when zstd makes them no smaller

The header byte says which codec (2 bits) and which columns hold differences (2 bits), then the same four bits inverted, as the
frame's checksum does not cover it. So a reader needs no setting. Encoding `raw` never comes here: raw chunks are the rows' bytes.
A `Codec` belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import zstandard

from rollstream.errors import SchemaMismatch
from rollstream.replay.encoding_choice import FRAME_BYTES
from rollstream.spaces import RowSpec

__all__ = ["Codec", "EncodedChunks", "EncodedRows"]

Bytes = npt.NDArray[np.uint8]

LEVEL = 3
"""On frames of games 2 to 4 % smaller than level 1 in the same time; level 6 takes three times as long for another 2 to 5 %."""
TRIAL_EVERY_CHUNKS = 256
"""How often `delta=None` compresses one chunk both ways to see which is smaller."""


class _Stored(IntEnum):
    """Lowest two bits of a value's header."""

    PLAIN = 0
    ZSTD = 1


class _Delta(IntEnum):
    """The next two bits of a value's header: which columns hold differences."""

    NONE = 0
    LARGE_INTEGERS = 1
    INTEGERS = 2


class EncodedRows(Protocol):
    """What a codec must know of a table (`TableSpec`)."""

    @property
    def row_spec(self) -> RowSpec: ...

    @property
    def chunk_rows(self) -> int: ...

    @property
    def delta(self) -> bool | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedChunks:
    """What is stored of K chunks.

    Attributes:
        values: K byte strings.
        stored_bytes: u4 [K], the length of each.
    """

    values: list[bytes]
    stored_bytes: npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """A column's place in a row; differences of its integers are taken in the unsigned type `unit`."""

    name: str
    offset: int
    size: int
    integer: bool
    unit: np.dtype[Any]


class Codec:
    """Encodes and decodes the chunks of one table.

    Args:
        spec: the table. `delta` True takes differences of all integer columns; None takes those of integer columns of at least
            1 KiB a row, while trials show that it makes chunks smaller.
    """

    def __init__(self, spec: EncodedRows) -> None:
        self._rows = spec.chunk_rows
        self._row_bytes = spec.row_spec.row_bytes
        self._chunk_bytes = self._rows * self._row_bytes
        self._fields = _fields(spec.row_spec)
        possible = self._rows > 1 and spec.delta is not False
        self._delta = (_Delta.INTEGERS if spec.delta else _Delta.LARGE_INTEGERS) if possible else _Delta.NONE
        self._on_trial = possible and spec.delta is None and bool(self._differenced(_Delta.LARGE_INTEGERS))
        self._until_trial = 0
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self._decompressor = zstandard.ZstdDecompressor()
        self._scratch = np.empty((0, self._chunk_bytes), np.uint8)

    def encode(self, payload: Bytes) -> EncodedChunks:
        """Values of chunks of packed rows. Shapes: payload u1 [K, chunk_bytes]; it is not changed."""
        if not len(payload):
            return EncodedChunks(values=[], stored_bytes=np.zeros(0, np.uint32))
        regrouped = self._regrouped(payload)
        delta = self._choose_delta(regrouped)
        self._take_differences(regrouped, delta)
        compressed = self._compressor.multi_compress_to_buffer(_segments(regrouped))
        zstd, plain = _header(_Stored.ZSTD, delta), _header(_Stored.PLAIN, delta)
        values = []
        for chunk in range(len(payload)):
            frame = compressed[chunk]
            smaller = len(frame) < self._chunk_bytes
            content: Any = frame if smaller else regrouped[chunk]
            values.append(b"".join((zstd if smaller else plain, content)))
        return EncodedChunks(values=values, stored_bytes=np.fromiter(map(len, values), np.uint32, len(values)))

    def decode(self, values: Sequence[bytes], *, name: Callable[[int], str] = "value {}".format) -> Bytes:
        """The packed rows of K values, u1 [K, chunk_bytes].

        Args:
            name: how an error calls the k-th value: its table and chunk.

        Raises:
            SchemaMismatch: a value is damaged, or not of this table's rows.
        """
        payload = np.empty((len(values), self._rows, self._row_bytes), np.uint8)
        for field, block in zip(self._fields, self._blocks(values, name), strict=True):
            payload[:, :, field.offset : field.offset + field.size] = block
        return payload.reshape(len(payload), self._chunk_bytes)

    def decode_columns(self, values: Sequence[bytes], *, name: Callable[[int], str] = "value {}".format) -> dict[str, Bytes]:
        """The bytes of each column of K values, u1 [K, chunk_rows, bytes a row]; raises as `decode`.

        They are views of one buffer and valid until the codec decodes again.
        """
        return {field.name: block for field, block in zip(self._fields, self._blocks(values, name), strict=True)}

    def _blocks(self, values: Sequence[bytes], name: Callable[[int], str]) -> list[Bytes]:
        if not values:
            return [np.zeros((0, self._rows, field.size), np.uint8) for field in self._fields]
        sizes = np.fromiter(map(len, values), np.int64, len(values))
        if not sizes.all():
            raise SchemaMismatch(f"{name(int(sizes.argmin()))} is empty: a zstd table stores a header byte before each chunk")
        headers = np.fromiter((value[0] for value in values), np.uint8, len(values))
        codec, delta = headers & np.uint8(3), headers >> np.uint8(2) & np.uint8(3)
        unknown = (headers >> 4 != ~headers & 15) | (codec > max(_Stored)) | (delta > max(_Delta))
        if unknown.any():
            bad = int(unknown.argmax())
            raise SchemaMismatch(
                f"{name(bad)} begins with the header byte {int(headers[bad])}, which this release does not know: it is damaged, or "
                "was written by a newer release"
            )
        regrouped = self._decompressed(values, codec, name)
        for kind in np.unique(delta).tolist():
            which = delta == kind
            if which.all():
                self._add_differences(regrouped, kind)
            else:
                part = regrouped[which]
                self._add_differences(part, kind)
                regrouped[which] = part
        return [self._block(regrouped, field) for field in self._fields]

    def _decompressed(self, values: Sequence[bytes], codec: Bytes, name: Callable[[int], str]) -> Bytes:
        """Into memory that is used again and again: fresh memory for so much would cost as much as decompressing."""
        if len(self._scratch) < len(values):
            self._scratch = np.empty((len(values), self._chunk_bytes), np.uint8)
        out = self._scratch[: len(values)]
        for chunk, (value, kind, place) in enumerate(zip(values, codec.tolist(), out, strict=True)):
            content = memoryview(value)[1:]
            if kind == _Stored.ZSTD:
                try:
                    self._require_size(chunk, zstandard.frame_content_size(content), name)
                    read = self._decompressor.stream_reader(content).readinto(place)
                except zstandard.ZstdError as error:
                    raise SchemaMismatch(f"{name(chunk)} is damaged: {error}; its rows cannot be read") from error
                if read < len(place):
                    raise SchemaMismatch(f"{name(chunk)} is damaged: it was cut off; its rows cannot be read")
            else:
                self._require_size(chunk, len(content), name)
                place[:] = np.frombuffer(content, np.uint8)
        return out

    def _require_size(self, chunk: int, size_bytes: int, name: Callable[[int], str]) -> None:
        if size_bytes != self._chunk_bytes:
            raise SchemaMismatch(
                f"{name(chunk)} holds {size_bytes} bytes where {self._chunk_bytes} are expected: reader and writer disagree about "
                "the rows"
            )

    def _regrouped(self, payload: Bytes) -> Bytes:
        rows = payload.reshape(len(payload), self._rows, self._row_bytes)
        out = np.empty((len(payload), self._chunk_bytes), np.uint8)
        for field in self._fields:
            self._block(out, field)[...] = rows[:, :, field.offset : field.offset + field.size]
        return out

    def _block(self, regrouped: Bytes, field: _Field) -> Bytes:
        """A column within regrouped chunks: a view [K, chunk_rows, bytes a row]."""
        start, size = field.offset * self._rows, field.size
        return regrouped[:, start : start + self._rows * size].reshape(len(regrouped), self._rows, size)

    def _differenced(self, delta: int) -> list[_Field]:
        smallest = {_Delta.LARGE_INTEGERS: FRAME_BYTES, _Delta.INTEGERS: 1}.get(_Delta(delta))
        if smallest is None:
            return []
        return [field for field in self._fields if field.integer and field.size >= smallest]

    def _take_differences(self, regrouped: Bytes, delta: int) -> None:
        for field in self._differenced(delta):
            block = self._block(regrouped, field).view(field.unit)
            block[:, 1:] -= block[:, :-1]

    def _add_differences(self, regrouped: Bytes, delta: int) -> None:
        for field in self._differenced(delta):
            block = self._block(regrouped, field).view(field.unit)
            for row in range(1, self._rows):
                block[:, row] += block[:, row - 1]

    def _choose_delta(self, regrouped: Bytes) -> _Delta:
        """Differences make slowly changing integers smaller, and textures that stand still larger: so one chunk is tried."""
        if self._on_trial and self._until_trial <= 0 and len(regrouped):
            self._until_trial = TRIAL_EVERY_CHUNKS
            chunk = regrouped[len(regrouped) // 2 :][:1].copy()
            without = len(self._compressor.compress(chunk.tobytes()))
            self._take_differences(chunk, _Delta.LARGE_INTEGERS)
            smaller = len(self._compressor.compress(chunk.tobytes())) < without
            self._delta = _Delta.LARGE_INTEGERS if smaller else _Delta.NONE
        self._until_trial -= len(regrouped)
        return self._delta


def _header(codec: _Stored, delta: _Delta) -> bytes:
    said = codec | delta << 2
    return bytes([said | (~said & 15) << 4])


def _segments(chunks: Bytes) -> zstandard.BufferWithSegments:
    size = chunks.shape[1]
    places = np.empty((len(chunks), 2), "<u8")
    places[:, 0] = np.arange(len(chunks), dtype=np.uint64) * size
    places[:, 1] = size
    return zstandard.BufferWithSegments(chunks.reshape(-1).data, places.tobytes())


def _fields(row_spec: RowSpec) -> list[_Field]:
    """Columns that hold bytes, in order."""
    fields = []
    for name, (dtype, offset, *_) in (row_spec.dtype.fields or {}).items():
        integer = dtype.base.kind in "iu"
        unit = np.dtype(f"<u{dtype.base.itemsize if integer else 1}")
        fields.append(_Field(name=name, offset=offset, size=dtype.itemsize, integer=integer, unit=unit))
    return fields
