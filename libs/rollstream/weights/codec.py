"""Weights as bytes: the safetensors format, written with one copy and read with none.

    header length u8 | header (JSON: name -> dtype, shape, offsets), padded to 64 bytes | tensors, one after the other

Any safetensors library reads it. The bytes depend on names, shapes and values alone, so equal weights have equal hashes. Nothing
in the format can make a reader execute anything, and every offset is checked before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rollstream.errors import NonFiniteError, SchemaMismatch

__all__ = ["decode_tensors", "encode_tensors", "require_finite"]

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_LENGTH_BYTES = 8
_ALIGNMENT = 64
_HEADER_MAX_BYTES = 100_000_000  # the format's own limit


class _Tensor(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def require_finite(tensors: Mapping[str, npt.NDArray[Any]], *, what: str) -> None:
    """Refuse NaN and infinities, naming the tensor, how many there are, and where the first one is.

    Args:
        what: stands at the start of the message, e.g. `weights version 7`.
    """
    for name, tensor in tensors.items():
        # Two passes without a temporary array: NaN and infinities cannot hide from both extremes.
        if tensor.dtype.kind != "f" or tensor.size == 0 or (np.isfinite(tensor.min()) and np.isfinite(tensor.max())):
            continue
        bad = np.flatnonzero(~np.isfinite(tensor))
        place = ", ".join(str(index) for index in np.unravel_index(bad[0], tensor.shape))
        raise NonFiniteError(
            f"{what} refused: tensor {name} has {len(bad)} of {tensor.size} values that are not finite, "
            f"the first at [{place}]: {tensor.reshape(-1)[bad[0]]}"
        )


def encode_tensors(tensors: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """The tensors in safetensors format. Contiguous tensors are copied once; others are made contiguous first."""
    header: dict[str, Any] = {}
    parts: list[Any] = []
    offset = 0
    for name, tensor in tensors.items():
        little = tensor.dtype.newbyteorder("<").str
        if little not in _NAMES:
            raise SchemaMismatch(
                f"tensor {name} has dtype {tensor.dtype}; weights are booleans, integers or floats of 1 to 8 bytes"
            )
        array = np.ascontiguousarray(tensor, little)
        end = offset + array.nbytes
        header[name] = {"dtype": _NAMES[little], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        parts.append(array.reshape(-1).view(np.uint8).data)
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(_LENGTH_BYTES + len(text)) % _ALIGNMENT)
    return b"".join([len(text).to_bytes(_LENGTH_BYTES, "little"), text, *parts])


def decode_tensors(blob: bytes) -> dict[str, npt.NDArray[Any]]:
    """The tensors in `blob`, as read-only views of it.

    Raises:
        SchemaMismatch: not in safetensors format, or with a dtype that NumPy does not have.
    """
    header_bytes = int.from_bytes(blob[:_LENGTH_BYTES], "little")
    base = _LENGTH_BYTES + header_bytes
    if len(blob) < _LENGTH_BYTES or header_bytes > _HEADER_MAX_BYTES or base > len(blob):
        raise SchemaMismatch(f"not weights in safetensors format: {len(blob)} bytes that begin with {bytes(blob[:8])!r}")
    try:
        header: dict[str, Any] = msgspec.json.decode(blob[_LENGTH_BYTES:base], type=dict[str, Any])
        header.pop("__metadata__", None)
        described = msgspec.convert(header, dict[str, _Tensor])
        return {name: _view(blob, base, tensor) for name, tensor in described.items()}
    except (msgspec.MsgspecError, ValueError, KeyError, OverflowError) as error:
        raise SchemaMismatch(f"not weights in safetensors format: {error}") from error


def _view(blob: bytes, base: int, tensor: _Tensor) -> npt.NDArray[Any]:
    dtype = np.dtype(_DTYPES[tensor.dtype])
    begin, end = tensor.data_offsets
    count = 1
    for axis in tensor.shape:
        count *= axis
    if min(begin, *tensor.shape, 0) < 0 or end - begin != count * dtype.itemsize or base + end > len(blob):
        raise ValueError(f"{tensor.dtype}{tensor.shape} does not fit bytes {begin} to {end} of {len(blob) - base}")
    if count == 0:
        return np.zeros(tensor.shape, dtype)
    return np.frombuffer(blob, dtype, count, base + begin).reshape(tensor.shape)
