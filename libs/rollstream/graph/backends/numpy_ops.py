"""The NumPy op table: the reference of every test and the table of the shape pass.

Written in ufuncs and a handful of functions that `numpy_tape` can record, so the same table also makes the acting path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.ops import Array

__all__ = ["NumpyOps"]


class NumpyOps:
    """See `rollstream.graph.ops.Ops`. `dtype` is float64 only where finite differences are taken."""

    def __init__(self, *, dtype: type[np.floating[Any]] = np.float32) -> None:
        self._dtype = np.dtype(dtype)

    def to_float(self, x: Array) -> Array:
        return x if x.dtype == self._dtype else np.positive(x, dtype=self._dtype, casting="unsafe")

    def constant(self, value: npt.NDArray[Any]) -> Array:
        return value

    def zeros_like(self, x: Array) -> Array:
        return np.zeros(x.shape, x.dtype)

    def ones_like(self, x: Array) -> Array:
        return np.ones(x.shape, x.dtype)

    def reshape(self, x: Array, shape: tuple[int, ...]) -> Array:
        return np.reshape(x, shape)

    def concatenate(self, parts: Sequence[Array], *, axis: int = -1) -> Array:
        return np.concatenate(list(parts), axis)

    def stack(self, parts: Sequence[Array]) -> Array:
        return np.concatenate([np.reshape(part, (1, *part.shape)) for part in parts], 0)

    def take(self, x: Array, index: npt.NDArray[np.int64]) -> Array:
        return np.take(x, index, -1)

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        return np.add(np.matmul(x, weight), bias)

    def dot(self, x: Array, y: Array) -> Array:
        return np.matmul(x, y)

    def tanh(self, x: Array) -> Array:
        return np.tanh(x)

    def relu(self, x: Array) -> Array:
        return np.maximum(x, self._dtype.type(0))

    def exp(self, x: Array) -> Array:
        return np.exp(x)

    def expm1(self, x: Array) -> Array:
        return np.expm1(x)

    def log(self, x: Array) -> Array:
        return np.log(x)

    def sqrt(self, x: Array) -> Array:
        return np.sqrt(x)

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

    def sum(self, x: Array, *, axis: int | None = None) -> Array:
        return np.add.reduce(x, axis)

    def max(self, x: Array) -> Array:
        return np.maximum.reduce(x, -1)

    def argmax(self, x: Array) -> Array:
        return np.argmax(x, -1)

    def cumsum(self, x: Array) -> Array:
        return np.add.accumulate(x, -1)

    def pick(self, x: Array, index: Array) -> Array:
        rows, width = x.shape
        offsets = np.arange(rows, dtype=np.int64) * width
        return np.take(np.reshape(x, (rows * width,)), np.add(offsets, index), -1)

    def log_softmax(self, x: Array) -> Array:
        shifted = np.subtract(x, np.reshape(np.maximum.reduce(x, -1), (*x.shape[:-1], 1)))
        total = np.add.reduce(np.exp(shifted), -1)
        return np.subtract(shifted, np.reshape(np.log(total), (*x.shape[:-1], 1)))

    def stop_gradient(self, x: Array) -> Array:
        return x

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
