"""The NumPy op table: the reference of every test, the table of the shape pass, and what acting and updates without a
framework record, see `numpy_tape`. Every function makes its buffers first and computes into them, so one text serves all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.backends import numpy_calls as calls
from rollstream.graph.backends.numpy_tape import Recorded, apply, elementwise, moves
from rollstream.graph.ops import Array

__all__ = ["NumpyOps"]


class NumpyOps:
    """See `rollstream.graph.ops.Ops`. `dtype` is float64 only where finite differences are taken."""

    def __init__(self, *, dtype: type[np.floating[Any]] = np.float32) -> None:
        self._dtype = np.dtype(dtype)

    def to_float(self, x: Array) -> Array:
        return x if x.dtype == self._dtype else apply("cast", calls.cast, x, dtype=self._dtype)

    def to_int(self, x: Array) -> Array:
        return x if x.dtype == np.int64 else apply("cast", calls.cast, x, dtype=np.dtype(np.int64))

    def constant(self, value: npt.NDArray[Any]) -> Array:
        return value

    def zeros_like(self, x: Array) -> Array:
        return np.zeros(x.shape, x.dtype)

    def ones_like(self, x: Array) -> Array:
        return np.ones(x.shape, x.dtype)

    def reshape(self, x: Array, shape: tuple[int, ...]) -> Array:
        return apply("reshape", calls.reshape, x, shape=shape)

    def transpose(self, x: Array, axes: tuple[int, ...]) -> Array:
        return apply("transpose", calls.transpose, x, axes=axes)

    def concatenate(self, parts: Sequence[Array], *, axis: int = -1) -> Array:
        return apply("concatenate", calls.concatenate, *parts, axis=axis)

    def stack(self, parts: Sequence[Array], *, axis: int = 0) -> Array:
        return apply("stack", calls.stack, *parts, axis=axis % (len(parts[0].shape) + 1))

    def take(self, x: Array, index: npt.NDArray[np.int64]) -> Array:
        return apply("take", calls.take, x, index=index)

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        return apply("linear", calls.linear, x, weight, bias)

    def rows(self, table: Array, index: Array) -> Array:
        return apply("rows", calls.rows, table, index)

    def matmul(self, x: Array, y: Array) -> Array:
        return apply("matmul", calls.matmul, x, y)

    def conv(self, x: Array, weight: Array, bias: Array, *, stride: int) -> Array:
        batch, (out, channels, *kernel), size = x.shape[0], weight.shape, x.shape[2:]
        x = apply("positive", calls.channels_last, x)
        kernels = self.transpose(self.reshape(self.transpose(weight, (0, 2, 3, 1)), (out, channels * math.prod(kernel))), (1, 0))
        down, across = calls.positions(size, tuple(kernel), stride)
        kept = batch if moves(weight) else min(batch, calls.block_images(down * across, channels * math.prod(kernel)))
        patches = np.empty((kept, down, across, *kernel, channels), x.dtype)
        return apply("conv", calls.conv, x, kernels, bias, kernel=tuple(kernel), stride=stride, patches=patches)

    def pad(self, x: Array, widths: tuple[tuple[int, int], ...]) -> Array:
        return apply("pad", calls.pad, x, widths=widths)

    def dot(self, x: Array, y: Array) -> Array:
        return apply("dot", calls.dot, x, y)

    def tanh(self, x: Array) -> Array:
        return elementwise(np.tanh, x)

    def relu(self, x: Array) -> Array:
        return apply("relu", calls.relu, x)

    def sigmoid(self, x: Array) -> Array:
        return apply("sigmoid", calls.sigmoid, x)

    def softplus(self, x: Array) -> Array:
        return apply("softplus", calls.softplus, x)

    def exp(self, x: Array) -> Array:
        return elementwise(np.exp, x)

    def expm1(self, x: Array) -> Array:
        return elementwise(np.expm1, x)

    def log(self, x: Array) -> Array:
        return elementwise(np.log, x)

    def sqrt(self, x: Array) -> Array:
        return elementwise(np.sqrt, x)

    def sign(self, x: Array) -> Array:
        return elementwise(np.sign, x)

    def floor(self, x: Array) -> Array:
        return elementwise(np.floor, x)

    def abs(self, x: Array) -> Array:
        return elementwise(np.absolute, x)

    def isfinite(self, x: Array) -> Array:
        return elementwise(np.isfinite, x)

    def minimum(self, x: Array, y: Array) -> Array:
        return elementwise(np.minimum, x, y)

    def maximum(self, x: Array, y: Array) -> Array:
        return elementwise(np.maximum, x, y)

    def clip(self, x: Array, low: Array | float, high: Array | float) -> Array:
        if moves(low) or moves(high):
            return self.minimum(self.maximum(x, low), high)
        if x.dtype.kind == "f":  # with a number NumPy's minimum takes three times as long as with an array of it
            low, high = (np.full(x.shape, bound, x.dtype) if isinstance(bound, (int, float)) else bound for bound in (low, high))
        return apply("clip", calls.clip, x, low, high)

    def where(self, condition: Array, x: Array, y: Array) -> Array:
        return apply("where", calls.where, condition, x, y)

    def sum(self, x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
        return apply("sum", calls.total, x, axis=axis, keepdims=keepdims)

    def mean(self, x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
        count = math.prod(x.shape) if axis is None else x.shape[axis]
        return elementwise(np.multiply, self.sum(self.to_float(x), axis=axis, keepdims=keepdims), self._dtype.type(1.0 / count))

    def max(self, x: Array, *, axis: int = -1, keepdims: bool = False) -> Array:
        return apply("max", calls.highest, x, axis=axis, keepdims=keepdims)

    def argmax(self, x: Array) -> Array:
        return apply("argmax", calls.argmax, x)

    def cumsum(self, x: Array) -> Array:
        return apply("cumsum", calls.cumsum, x)

    def pick(self, x: Array, index: Array) -> Array:
        return apply("gather", calls.gather, x, apply("places", calls.places, index, width=x.shape[-1]))

    def log_softmax(self, x: Array) -> Array:
        return apply("log_softmax", calls.log_softmax, x)

    def stop_gradient(self, x: Array) -> Array:
        return Recorded(x.array, x.tape) if isinstance(x, Recorded) else x

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
        if first.ndim == 1 and not any(isinstance(item, Recorded) for item in (initial, *arrays)):
            return _scan_numbers(step, initial, arrays)
        carry, found = initial, []
        for t in range(first.shape[0] - 1, -1, -1):
            carry = step(carry, *(array[t] for array in arrays))
            found.append(carry)
        return self.stack(found[::-1])


def _scan_numbers(step: Callable[..., Array], initial: Array, arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """In Python floats, which beat arrays of one number by ten."""
    carry: Array = float(initial)
    scanned = []
    for values in zip(*(array.tolist()[::-1] for array in arrays), strict=True):
        carry = step(carry, *values)
        scanned.append(carry)
    return np.asarray(scanned[::-1], arrays[0].dtype)
