"""The NumPy op table: the reference of every test and the table of the shape pass.

Written in ufuncs and a handful of functions that `numpy_tape` can record, so the same table also makes the acting path.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.backends.numpy_tape import view_of
from rollstream.graph.ops import Array

__all__ = ["NumpyOps"]


class NumpyOps:
    """See `rollstream.graph.ops.Ops`. `dtype` is float64 only where finite differences are taken."""

    def __init__(self, *, dtype: type[np.floating[Any]] = np.float32) -> None:
        self._dtype = np.dtype(dtype)

    def to_float(self, x: Array) -> Array:
        return x if x.dtype == self._dtype else np.positive(x, dtype=self._dtype, casting="unsafe")

    def to_int(self, x: Array) -> Array:
        return x if x.dtype == np.int64 else np.positive(x, dtype=np.int64, casting="unsafe")

    def constant(self, value: npt.NDArray[Any]) -> Array:
        return value

    def zeros_like(self, x: Array) -> Array:
        return np.zeros(x.shape, x.dtype)

    def ones_like(self, x: Array) -> Array:
        return np.ones(x.shape, x.dtype)

    def reshape(self, x: Array, shape: tuple[int, ...]) -> Array:
        return np.reshape(x, shape)

    def transpose(self, x: Array, axes: tuple[int, ...]) -> Array:
        return view_of(x, lambda array: array.transpose(axes))

    def concatenate(self, parts: Sequence[Array], *, axis: int = -1) -> Array:
        return np.concatenate(list(parts), axis)

    def stack(self, parts: Sequence[Array], *, axis: int = 0) -> Array:
        place = axis % (len(parts[0].shape) + 1)
        return np.concatenate([np.reshape(part, (*part.shape[:place], 1, *part.shape[place:])) for part in parts], place)

    def take(self, x: Array, index: npt.NDArray[np.int64]) -> Array:
        return np.take(x, index, -1)

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        return np.add(np.matmul(x, weight), bias)

    def rows(self, table: Array, index: Array) -> Array:
        return np.take(table, index, 0)

    def matmul(self, x: Array, y: Array) -> Array:
        return np.matmul(x, y)

    def conv(self, x: Array, weight: Array, bias: Array, *, stride: int) -> Array:
        batch, out, (height, width) = x.shape[0], weight.shape[0], weight.shape[2:]

        def patches(image: npt.NDArray[Any]) -> npt.NDArray[Any]:  # [B, H', W', C, KH, KW]
            windows = np.lib.stride_tricks.sliding_window_view(image, (height, width), axis=(2, 3))
            return windows[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)

        seen = view_of(x, patches)
        down, across = seen.shape[1:3]
        columns = np.reshape(seen, (batch * down * across, math.prod(weight.shape[1:])))
        kernels = view_of(np.reshape(weight, (out, math.prod(weight.shape[1:]))), np.transpose)
        y = np.reshape(np.add(np.matmul(columns, kernels), bias), (batch, down, across, out))
        return view_of(y, lambda array: array.transpose(0, 3, 1, 2))

    def pad(self, x: Array, widths: tuple[tuple[int, int], ...]) -> Array:
        for axis, (before, after) in enumerate(widths):
            shapes = [(*x.shape[:axis], width, *x.shape[axis + 1 :]) for width in (before, after)]
            zeros = [np.zeros(shape, x.dtype) for shape in shapes]
            if before or after:
                x = np.concatenate([zeros[0], x, zeros[1]], axis)
        return x

    def dot(self, x: Array, y: Array) -> Array:
        return np.matmul(x, y)

    def tanh(self, x: Array) -> Array:
        return np.tanh(x)

    def relu(self, x: Array) -> Array:
        return np.maximum(x, self._dtype.type(0))

    def sigmoid(self, x: Array) -> Array:
        half = self._dtype.type(0.5)
        return np.add(np.multiply(np.tanh(np.multiply(x, half)), half), half)

    def softplus(self, x: Array) -> Array:
        return np.logaddexp(x, self._dtype.type(0))

    def exp(self, x: Array) -> Array:
        return np.exp(x)

    def expm1(self, x: Array) -> Array:
        return np.expm1(x)

    def log(self, x: Array) -> Array:
        return np.log(x)

    def sqrt(self, x: Array) -> Array:
        return np.sqrt(x)

    def sign(self, x: Array) -> Array:
        return np.sign(x)

    def floor(self, x: Array) -> Array:
        return np.floor(x)

    def abs(self, x: Array) -> Array:
        return np.abs(x)

    def isfinite(self, x: Array) -> Array:
        return np.isfinite(x)

    def minimum(self, x: Array, y: Array) -> Array:
        return np.minimum(x, y)

    def maximum(self, x: Array, y: Array) -> Array:
        return np.maximum(x, y)

    def clip(self, x: Array, low: Array | float, high: Array | float) -> Array:
        return np.minimum(np.maximum(x, low), high)

    def where(self, condition: Array, x: Array, y: Array) -> Array:
        return np.where(condition, x, y)

    def sum(self, x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
        return _kept(np.add.reduce(x, axis), x, axis, keepdims=keepdims)

    def mean(self, x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
        count = math.prod(x.shape) if axis is None else x.shape[axis]
        return np.multiply(self.sum(x, axis=axis, keepdims=keepdims), self._dtype.type(1.0 / count))

    def max(self, x: Array, *, axis: int = -1, keepdims: bool = False) -> Array:
        return _kept(np.maximum.reduce(x, axis), x, axis, keepdims=keepdims)

    def argmax(self, x: Array) -> Array:
        return np.argmax(x, -1)

    def cumsum(self, x: Array) -> Array:
        return np.add.accumulate(x, -1)

    def pick(self, x: Array, index: Array) -> Array:
        lead, width = tuple(x.shape[:-1]), x.shape[-1]
        offsets = np.arange(math.prod(lead), dtype=np.int64).reshape(lead) * width
        return np.take(np.reshape(x, (math.prod(x.shape),)), np.add(offsets, index), -1)

    def log_softmax(self, x: Array) -> Array:
        shifted = np.subtract(x, np.reshape(np.maximum.reduce(x, -1), (*x.shape[:-1], 1)))
        total = np.add.reduce(np.exp(shifted), -1)
        return np.subtract(shifted, np.reshape(np.log(total), (*x.shape[:-1], 1)))

    def stop_gradient(self, x: Array) -> Array:
        return x

    def scan(
        self, step: Callable[..., tuple[tuple[Array, ...], Array]], initial: tuple[Array, ...], arrays: Sequence[Array]
    ) -> tuple[tuple[Array, ...], Array]:
        carry, found = initial, []
        for t in range(arrays[0].shape[0]):
            carry, y = step(carry, *(array[t] for array in arrays))
            found.append(y)
        return carry, self.stack(found)

    def scan_reverse(self, step: Callable[..., Array], initial: Array, arrays: Sequence[Array]) -> Array:
        first = arrays[0]
        if first.ndim == 1:  # Python floats beat arrays of one number by ten
            carry: Array = float(initial)
            scanned = []
            for values in zip(*(array.tolist()[::-1] for array in arrays), strict=True):
                carry = step(carry, *values)
                scanned.append(carry)
            return np.asarray(scanned[::-1], first.dtype)
        out = np.empty(first.shape, first.dtype)
        carry = initial
        for t in range(len(first) - 1, -1, -1):
            carry = step(carry, *(array[t] for array in arrays))
            out[t] = carry
        return out


def _kept(reduced: Array, x: Array, axis: int | None, *, keepdims: bool) -> Array:
    """The reduced array with the axis (or all) of length 1 where it was."""
    if not keepdims:
        return reduced
    if axis is None:
        return np.reshape(reduced, (1,) * len(x.shape))
    place = axis % len(x.shape)
    return np.reshape(reduced, (*x.shape[:place], 1, *x.shape[place + 1 :]))
