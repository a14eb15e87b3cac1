"""The NumPy calls of each op: `function(do, *arrays)` makes the buffers and computes into them by `do`, see `numpy_tape`.

Which call is used is a matter of microseconds: sums along a contiguous axis are dot products with ones (a tenth of a
reduction's time where rows are short), and the highest of few columns is taken over a transposed copy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rollstream.graph.backends.numpy_tape import Do, NDArray, fitted

__all__ = [
    "argmax",
    "block_images",
    "cast",
    "channels_last",
    "clip",
    "concatenate",
    "conv",
    "cumsum",
    "dot",
    "gather",
    "highest",
    "inside",
    "linear",
    "log_softmax",
    "matmul",
    "pad",
    "places",
    "positions",
    "relu",
    "reshape",
    "rows",
    "sigmoid",
    "softplus",
    "stack",
    "take",
    "total",
    "transpose",
    "where",
]

FEW_COLUMNS, MANY_ROWS = 32, 16
"""The highest of at most so few columns, in at least so many rows, is taken over a transposed copy."""
LARGE_EXPONENT = 88.0
"""exp of it is just finite in float32."""
CACHE_BYTES = 1 << 19
"""Half of the second-level cache that is usual now."""


def cast(do: Do, x: NDArray, *, dtype: np.dtype[Any]) -> NDArray:
    """To `dtype`; floats to integers towards zero."""
    out = np.empty_like(x, dtype=dtype)
    do(np.copyto, out, x, "unsafe")
    return out


def reshape(do: Do, x: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    """A view; of a copy where the entries do not lie in order."""
    if x.flags.c_contiguous:
        return x.reshape(shape)
    dense = np.empty(x.shape, x.dtype)
    do(np.copyto, dense, x)
    return dense.reshape(shape)


def transpose(do: Do, x: NDArray, *, axes: tuple[int, ...]) -> NDArray:
    """A view."""
    return x.transpose(axes)


def concatenate(do: Do, *parts: NDArray, axis: int) -> NDArray:
    """Side by side."""
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    out = np.empty(shape, np.result_type(*parts))
    do(np.concatenate, parts, axis, out)
    return out


def stack(do: Do, *parts: NDArray, axis: int) -> NDArray:
    """Side by side along a new axis."""
    return concatenate(do, *(np.expand_dims(part, axis) for part in parts), axis=axis)


def take(do: Do, x: NDArray, *, index: NDArray) -> NDArray:
    """Entries of the last axis."""
    out = np.empty((*x.shape[:-1], *index.shape), x.dtype)
    do(x.take, index, -1, out, "clip")  # "raise" would write through a temporary
    return out


def rows(do: Do, table: NDArray, index: NDArray) -> NDArray:
    """Entries of the first axis."""
    out = np.empty((*index.shape, *table.shape[1:]), table.dtype)
    do(table.take, index, 0, out, "clip")
    return out


def places(do: Do, index: NDArray, *, width: int) -> NDArray:
    """Where entry `index` of each row lies when rows of `width` are laid end to end."""
    if index.size == 1 and index.dtype == np.int64:
        return index
    offsets = np.arange(index.size, dtype=np.int64).reshape(index.shape) * width
    out = np.empty(index.shape, np.int64)
    do(np.add, offsets, index, out)
    return out


def gather(do: Do, x: NDArray, where: NDArray) -> NDArray:
    """Entries at `places`, x [..., A] -> [...]."""
    out = np.empty(x.shape[:-1], x.dtype)
    do(reshape(do, x, shape=(x.size,)).take, where, 0, out, "clip")
    return out


def linear(do: Do, x: NDArray, weight: NDArray, bias: NDArray) -> NDArray:
    """The bias is added where the product lies."""
    out = np.empty((x.shape[0], weight.shape[1]), np.result_type(x, weight, bias))
    do(np.dot, x, weight, out)
    do(np.add, *fitted((out, bias), out), out)
    return out


def matmul(do: Do, x: NDArray, y: NDArray) -> NDArray:
    """Matrices in the last two axes."""
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(f"matmul: shapes {list(x.shape)} and {list(y.shape)} do not fit")
    out = np.empty((*lead, x.shape[-2], y.shape[-1]), np.result_type(x, y))
    do(np.dot if x.ndim == y.ndim == 2 else np.matmul, x, y, out)
    return out


def dot(do: Do, x: NDArray, y: NDArray) -> NDArray:
    """Over the last axis."""
    out = np.empty(x.shape[:-1], np.result_type(x, y))
    do(np.dot, x, y, out)
    return out


def channels_last(do: Do, x: NDArray) -> NDArray:
    """Images [B, C, H, W], the same, whose channels lie next to each other in memory."""
    if x.strides[1] < x.strides[3]:
        return x
    laid = np.empty((x.shape[0], *x.shape[2:], x.shape[1]), x.dtype)
    for channel in range(x.shape[1]):  # far faster than one copy with the axes turned
        do(np.copyto, laid[..., channel], x[:, channel])
    return laid.transpose(0, 3, 1, 2)


def positions(size: tuple[int, ...], kernel: tuple[int, ...], stride: int) -> tuple[int, ...]:
    """How often a kernel fits, for each axis."""
    return tuple((whole - part) // stride + 1 for whole, part in zip(size, kernel, strict=True))


def block_images(patches: int, width: int) -> int:
    """How many images' patches stay in the cache between being laid out and being multiplied."""
    return max(1, CACHE_BYTES // (4 * patches * width))


def conv(
    do: Do, x: NDArray, kernels: NDArray, bias: NDArray, *, kernel: tuple[int, int], stride: int, patches: NDArray
) -> NDArray:
    """x [B, C, H, W] -> [B, O, H', W'], all channels last in memory, by one matrix product for each block of images.

    kernels [KH * KW * C, O]. `patches` [images, H', W', KH, KW, C] is room for what the kernel sees at each place: of one block, or of all
    images when it is to be kept.
    """
    seen = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(2, 3))[:, :, ::stride, ::stride].transpose(0, 2, 3, 4, 5, 1)
    size, (down, across) = math.prod(seen.shape[1:3]), seen.shape[1:3]
    y = np.empty((len(x) * size, kernels.shape[1]), x.dtype)
    step = min(len(patches), block_images(size, kernels.shape[0]))
    for start in range(0, len(x), step):
        end = min(start + step, len(x))
        room = patches[start:end] if len(patches) == len(x) else patches[: end - start]
        do(np.copyto, room, seen[start:end])
        do(np.dot, room.reshape(-1, kernels.shape[0]), kernels, y[start * size : end * size])
    do(np.add, y, bias, y)
    return y.reshape(len(x), down, across, -1).transpose(0, 3, 1, 2)


def pad(do: Do, x: NDArray, *, widths: tuple[tuple[int, int], ...]) -> NDArray:
    """Zeros are written once: replays write inside them."""
    out = np.zeros([before + size + after for size, (before, after) in zip(x.shape, widths, strict=True)], x.dtype)
    do(np.copyto, out[inside(x.shape, widths)], x)
    return out


def inside(shape: tuple[int, ...], widths: tuple[tuple[int, int], ...]) -> tuple[slice, ...]:
    """Where an array lies in its padded form."""
    return tuple(slice(before, before + size) for size, (before, _) in zip(shape, widths, strict=True))


def relu(do: Do, x: NDArray) -> NDArray:
    """The positive part."""
    out = np.empty_like(x)
    do(np.maximum, x, np.zeros_like(out), out=out)
    return out


def sigmoid(do: Do, x: NDArray) -> NDArray:
    """1 / (1 + exp(-x)), the exponent bounded so that nothing overflows."""
    out = np.empty_like(x)
    do(np.negative, x, out)
    do(np.minimum, out, np.full_like(out, LARGE_EXPONENT), out=out)
    do(np.exp, out, out)
    do(np.add, out, np.ones((), x.dtype), out)
    do(np.reciprocal, out, out)
    return out


def softplus(do: Do, x: NDArray) -> NDArray:
    """max(x, 0) + log1p(exp(-|x|))."""
    out, positive = np.empty_like(x), np.empty_like(x)
    do(np.absolute, x, out)
    do(np.negative, out, out)
    do(np.exp, out, out)
    do(np.log1p, out, out)
    do(np.maximum, x, np.zeros_like(out), out=positive)
    do(np.add, out, positive, out)
    return out


def clip(do: Do, x: NDArray, low: NDArray, high: NDArray) -> NDArray:
    """Into [low, high]."""
    out = np.empty(np.broadcast_shapes(x.shape, np.shape(low), np.shape(high)), x.dtype)
    do(np.maximum, x, low, out=out)
    do(np.minimum, out, high, out=out)
    return out


def where(do: Do, condition: NDArray, x: NDArray, y: NDArray) -> NDArray:
    """x where the condition holds, else y."""
    shape = np.broadcast_shapes(condition.shape, np.shape(x), np.shape(y))
    out = np.empty(shape, np.result_type(x, y))
    do(np.copyto, out, y)
    do(np.copyto, out, x, where=condition)
    return out


def total(do: Do, x: NDArray, *, axis: int | None, keepdims: bool = False) -> NDArray:
    """The sum; of integers and truth values as int64."""
    out = np.empty(_without(x.shape, axis), x.dtype if x.dtype.kind == "f" else np.int64)
    if x.dtype.kind == "f" and x.flags.c_contiguous and (axis is None or axis % x.ndim in (0, x.ndim - 1)):
        _sum_by_product(do, x, axis, out)
    else:
        do(np.add.reduce, x, axis, out.dtype, out)
    return out.reshape(_kept(x.shape, axis)) if keepdims else out


def _sum_by_product(do: Do, x: NDArray, axis: int | None, out: NDArray) -> None:
    if axis is None or x.ndim == 1:
        do(np.dot, x.reshape(-1), np.ones(x.size, x.dtype), out)
    elif axis % x.ndim == 0:
        do(np.dot, np.ones(len(x), x.dtype), x.reshape(len(x), -1), out.reshape(-1))
    else:
        do(np.dot, x.reshape(-1, x.shape[-1]), np.ones(x.shape[-1], x.dtype), out.reshape(-1))


def highest(do: Do, x: NDArray, *, axis: int, keepdims: bool = False) -> NDArray:
    """The maximum along an axis."""
    out = np.empty(_without(x.shape, axis), x.dtype)
    width = x.shape[axis]
    if axis % x.ndim == x.ndim - 1 and width <= FEW_COLUMNS and out.size >= MANY_ROWS and x.flags.c_contiguous:
        columns = np.empty((width, out.size), x.dtype)
        do(np.copyto, columns, x.reshape(-1, width).T)
        do(np.maximum.reduce, columns, 0, None, out.reshape(-1))
    else:
        do(np.maximum.reduce, x, axis, None, out)
    return out.reshape(_kept(x.shape, axis)) if keepdims else out


def argmax(do: Do, x: NDArray) -> NDArray:
    """The first of the highest along the last axis."""
    out = np.empty(x.shape[:-1], np.int64)
    do(x.argmax, -1, out)
    return out


def cumsum(do: Do, x: NDArray) -> NDArray:
    """Along the last axis."""
    out = np.empty(x.shape, x.dtype)
    do(np.add.accumulate, x, -1, None, out)
    return out


def log_softmax(do: Do, x: NDArray) -> NDArray:
    """x - max - log(sum(exp(x - max))), along the last axis."""
    out, raised = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
    do(np.subtract, *fitted((x, highest(do, x, axis=-1, keepdims=True)), out), out)
    do(np.exp, out, raised)
    rest = total(do, raised, axis=-1, keepdims=True)
    do(np.log, rest, rest)
    do(np.subtract, *fitted((out, rest), out), out)
    return out


def _without(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    if axis is None:
        return ()
    place = axis % len(shape)
    return (*shape[:place], *shape[place + 1 :])


def _kept(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    if axis is None:
        return (1,) * len(shape)
    place = axis % len(shape)
    return (*shape[:place], 1, *shape[place + 1 :])
