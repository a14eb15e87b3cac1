"""The message of an edge: one contiguous buffer, encoded with one copy and decoded with none.

    prologue (24 bytes, the same in every schema version): magic, schema version, writer, header bytes, sequence
    fixed part: hash of the columns, versions, env steps, rows, T, N, episodes, total bytes, directory bytes
    directory (msgpack): actor, metrics, and (name, dtype, shape, offset) of each column
    returns f8[E], lengths i8[E], then each column; every array starts at a multiple of 64 bytes

The columns of a decoded message are read-only views of the buffer. Nothing in it can make the reader execute anything: dtypes are
numbers only, and every offset is checked against the buffer before it is used.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch
from rollstream.spaces import Batch, Episodes

__all__ = ["OLDEST_READABLE_SCHEMA", "SCHEMA", "EdgeMessage", "Prologue", "decode_batch", "encode_batch", "read_prologue"]

SCHEMA = 1
"""Schema version that this release writes."""
OLDEST_READABLE_SCHEMA = 1
"""Oldest schema version that this release reads: what the last release wrote."""

_MAGIC = b"RSEM"
_PROLOGUE = struct.Struct("<4sHHIIQ")  # magic, schema, 0, writer, header bytes, sequence
_FIXED = struct.Struct("<16sIIQIIIIQQ")  # hash, version, newest, env steps, rows, T, N, episodes, total bytes, directory bytes
_ALIGNMENT = 64
_DTYPE = re.compile(r"[<|][biuf](1|2|4|8)")


class _Column(msgspec.Struct, array_like=True):
    name: str
    dtype: str
    shape: list[int]
    offset: int


class _Directory(msgspec.Struct, array_like=True):
    actor: str
    metrics: dict[str, float]
    columns: list[_Column]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Directory)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prologue:
    """The first 24 bytes: enough to know whose message it is, also when it is of a schema version that cannot be read."""

    schema: int
    writer: int
    sequence: int
    header_bytes: int

    @property
    def readable(self) -> bool:
        return OLDEST_READABLE_SCHEMA <= self.schema <= SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeMessage:
    """A decoded message.

    Attributes:
        batch: its content; the columns are read-only views of the received buffer.
        writer: id of the writer's incarnation. `sequence`: its number there, counted from 1.
        spec_hash: hash of the RowSpec of the columns.
        shape: (T, N) of the rollout that the rows came from; (0, 0) when it has no such shape.
        entry_id: where it lies in the stream; empty for a message that came from no stream.
    """

    batch: Batch
    writer: int
    sequence: int
    spec_hash: str
    shape: tuple[int, int] = (0, 0)
    entry_id: bytes = b""


def encode_batch(batch: Batch, *, spec_hash: str, writer: int, sequence: int, shape: tuple[int, int] = (0, 0)) -> bytes:
    """The message that carries `batch`. Contiguous columns are copied once; others are made contiguous first.

    Args:
        spec_hash: `RowSpec.hash` of the columns, at most 16 characters.
        shape: (T, N) of the rollout.
    """
    columns = {name: _contiguous(name, column) for name, column in batch.columns.items()}
    rows = batch.rows
    for name, column in columns.items():
        if column.ndim == 0 or len(column) != rows:
            raise SchemaMismatch(
                f"column {name} has shape {list(column.shape)} in a batch of {rows} rows; all need the same first axis"
            )
    episodes = len(batch.episodes)
    arrays = [
        np.ascontiguousarray(batch.episodes.returns, "<f8"),
        np.ascontiguousarray(batch.episodes.lengths, "<i8"),
        *columns.values(),
    ]
    described = [_Column(name, column.dtype.str, list(column.shape), 0) for name, column in columns.items()]
    directory = _Directory(batch.actor, {name: float(value) for name, value in batch.metrics.items()}, described)
    # The size of the directory depends on the offsets in it, so these count from the end of the header.
    offset = 0
    offsets = []
    for array in arrays:
        offsets.append(offset)
        offset = _aligned(offset + array.nbytes)
    for description, column_offset in zip(described, offsets[2:], strict=True):
        description.offset = column_offset
    packed = _encoder.encode(directory)
    header_bytes = _aligned(_PROLOGUE.size + _FIXED.size + len(packed))
    total_bytes = header_bytes + (offsets[-1] + arrays[-1].nbytes)
    parts: list[Any] = [
        _PROLOGUE.pack(_MAGIC, SCHEMA, 0, writer, header_bytes, sequence),
        _FIXED.pack(
            spec_hash.encode("ascii"), batch.version, batch.newest_version, batch.env_steps,
            rows, *shape, episodes, total_bytes, len(packed),
        ),
        packed,
    ]  # fmt: skip
    written = _PROLOGUE.size + _FIXED.size + len(packed)
    for array, array_offset in zip(arrays, offsets, strict=True):
        parts.append(bytes(header_bytes + array_offset - written))
        parts.append(array.reshape(-1).view(np.uint8).data)
        written = header_bytes + array_offset + array.nbytes
    return b"".join(parts)


def read_prologue(buffer: bytes) -> Prologue | None:
    """The prologue of a message of any schema version; None when `buffer` is no message."""
    if len(buffer) < _PROLOGUE.size:
        return None
    magic, schema, _, writer, header_bytes, sequence = _PROLOGUE.unpack_from(buffer)
    if magic != _MAGIC:
        return None
    return Prologue(schema=schema, writer=writer, sequence=sequence, header_bytes=header_bytes)


def decode_batch(buffer: bytes) -> EdgeMessage:
    """The message in `buffer`, without copying its columns.

    Raises:
        SchemaMismatch: of a schema version that this release cannot read (names both), or no message at all.
    """
    prologue = read_prologue(buffer)
    if prologue is None:
        raise SchemaMismatch(f"not an edge message: {len(buffer)} bytes that begin with {bytes(buffer[:8])!r}")
    if not prologue.readable:
        raise SchemaMismatch(
            f"edge message has schema version {prologue.schema}, this process reads {OLDEST_READABLE_SCHEMA} to {SCHEMA}; "
            "run the same or the next release on both sides"
        )
    try:
        return _decode(buffer, prologue)
    except (ValueError, TypeError, struct.error, OverflowError, msgspec.MsgspecError) as error:
        raise SchemaMismatch(f"not an edge message: damaged after the prologue: {error}") from error


def _decode(buffer: bytes, prologue: Prologue) -> EdgeMessage:
    start = _PROLOGUE.size + _FIXED.size
    fixed = _FIXED.unpack_from(buffer, _PROLOGUE.size)
    spec_hash, version, newest_version, env_steps, rows, time_steps, envs, episodes, total_bytes, directory_bytes = fixed
    base = prologue.header_bytes
    if total_bytes != len(buffer) or not start + directory_bytes <= base <= total_bytes:
        raise ValueError(f"{len(buffer)} bytes where the header tells of {total_bytes}")
    directory = _decoder.decode(memoryview(buffer)[start : start + directory_bytes])
    columns = {}
    for column in directory.columns:
        if not _DTYPE.fullmatch(column.dtype) or not column.shape or column.shape[0] != rows:
            raise ValueError(f"column {column.name!r} has dtype {column.dtype!r} and shape {column.shape} among {rows} rows")
        columns[column.name] = _view(buffer, column.dtype, tuple(column.shape), base, column.offset)
    lengths_offset = _aligned(8 * episodes)
    batch = Batch(
        columns=columns,
        env_steps=env_steps,
        version=version,
        newest_version=newest_version,
        actor=directory.actor,
        sequence=prologue.sequence,
        episodes=Episodes(
            returns=_view(buffer, "<f8", (episodes,), base, 0),
            lengths=_view(buffer, "<i8", (episodes,), base, lengths_offset),
        ),
        metrics=directory.metrics,
    )
    return EdgeMessage(
        batch=batch,
        writer=prologue.writer,
        sequence=prologue.sequence,
        spec_hash=spec_hash.rstrip(b"\0").decode("ascii"),
        shape=(time_steps, envs),
    )


def _view(buffer: bytes, dtype: str, shape: tuple[int, ...], base: int, offset: int) -> npt.NDArray[Any]:
    if offset < 0 or min(shape) < 0:
        raise ValueError(f"negative offset or shape: {offset}, {shape}")
    count = 1
    for axis in shape:  # Python integers: no overflow, however large a damaged shape is
        count *= axis
    if count == 0:
        return np.zeros(shape, dtype)
    if base + offset + count * np.dtype(dtype).itemsize > len(buffer):
        raise ValueError(f"an array of shape {shape} ends behind the message")
    return np.frombuffer(buffer, dtype, count, base + offset).reshape(shape)


def _contiguous(name: str, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    little = column.dtype.newbyteorder("<")
    if not _DTYPE.fullmatch(little.str):
        raise SchemaMismatch(
            f"column {name} has dtype {column.dtype}; an edge carries booleans, integers and floats of 1 to 8 bytes"
        )
    return np.ascontiguousarray(column, little)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
