"""The ONNX op table; see `rollstream.graph.ops.Ops`. Each function adds to a graph what ONNX Runtime shall do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.backends.onnx.elementwise import BOOL, FLOAT, INT, apply, together
from rollstream.graph.backends.onnx.graph import Graph, Value

__all__ = ["OnnxOps"]


class OnnxOps:
    """Values of one graph in, values of that graph out."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def to_float(self, x: Value) -> Value:
        return x.cast(FLOAT)

    def to_int(self, x: Value) -> Value:
        return x.cast(INT)

    def constant(self, value: npt.NDArray[Any]) -> Value:
        return self._graph.constant(value)

    def zeros_like(self, x: Value) -> Value:
        return self._filled(x, 0)

    def ones_like(self, x: Value) -> Value:
        return self._filled(x, 1)

    def reshape(self, x: Value, shape: tuple[int, ...]) -> Value:
        return x.reshaped(_resolved(x.shape, shape))

    def transpose(self, x: Value, axes: tuple[int, ...]) -> Value:
        order = [axis % x.ndim for axis in axes]
        return self._graph.node("Transpose", [x], shape=tuple(x.shape[axis] for axis in order), dtype=x.dtype, perm=order)

    def concatenate(self, parts: Sequence[Value], *, axis: int = -1) -> Value:
        arrays = together(self._graph, parts)
        shape = list(arrays[0].shape)
        shape[axis] = sum(part.shape[axis] for part in arrays)
        return self._graph.node("Concat", arrays, shape=tuple(shape), dtype=arrays[0].dtype, axis=axis)

    def stack(self, parts: Sequence[Value], *, axis: int = 0) -> Value:
        arrays = together(self._graph, parts)
        return self.concatenate([self._unsqueeze(part, axis % (part.ndim + 1)) for part in arrays], axis=axis)

    def take(self, x: Value, index: npt.NDArray[np.int64]) -> Value:
        where = self._graph.constant(np.asarray(index, np.int64))
        return self._graph.node("Gather", [x, where], shape=(*x.shape[:-1], *where.shape), dtype=x.dtype, axis=-1)

    def rows(self, table: Value, index: Value) -> Value:
        shape = (*index.shape, *table.shape[1:])
        return self._graph.node("Gather", [table, index.cast(INT)], shape=shape, dtype=table.dtype, axis=0)

    def linear(self, x: Value, weight: Value, bias: Value) -> Value:
        return self._graph.node("Gemm", [x, weight, bias], shape=(x.shape[0], weight.shape[1]), dtype=x.dtype)

    def matmul(self, x: Value, y: Value) -> Value:
        x, y = together(self._graph, [x, y])
        lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        return self._graph.node("MatMul", [x, y], shape=(*lead, x.shape[-2], y.shape[-1]), dtype=x.dtype)

    def conv(self, x: Value, weight: Value, bias: Value, *, stride: int) -> Value:
        out, (high, wide) = weight.shape[0], weight.shape[2:]
        shape = (x.shape[0], out, 1 + (x.shape[2] - high) // stride, 1 + (x.shape[3] - wide) // stride)
        attributes = {"kernel_shape": [high, wide], "strides": [stride, stride]}
        return self._graph.node("Conv", [x, weight, bias], shape=shape, dtype=x.dtype, **attributes)

    def pad(self, x: Value, widths: tuple[tuple[int, int], ...]) -> Value:
        before, after = [pair[0] for pair in widths], [pair[1] for pair in widths]
        shape = tuple(size + sum(pair) for size, pair in zip(x.shape, widths, strict=True))
        return self._graph.node("Pad", [x, self._numbers([*before, *after])], shape=shape, dtype=x.dtype)

    def dot(self, x: Value, y: Value) -> Value:
        return self._graph.node("MatMul", together(self._graph, [x, y]), shape=x.shape[:-1], dtype=x.dtype)

    def tanh(self, x: Value) -> Value:
        return apply(self._graph, "tanh", [x])

    def relu(self, x: Value) -> Value:
        return self._same("Relu", x)

    def sigmoid(self, x: Value) -> Value:
        return self._same("Sigmoid", x)

    def softplus(self, x: Value) -> Value:
        return self._same("Softplus", x)

    def exp(self, x: Value) -> Value:
        return apply(self._graph, "exp", [x])

    def expm1(self, x: Value) -> Value:
        """tanh(x / 2) (exp(x) + 1), which keeps its digits near 0; ONNX has no expm1."""
        return apply(self._graph, "multiply", [self.tanh(x * 0.5), self.exp(x) + 1.0])

    def log(self, x: Value) -> Value:
        return apply(self._graph, "log", [x])

    def sqrt(self, x: Value) -> Value:
        return apply(self._graph, "sqrt", [x])

    def sign(self, x: Value) -> Value:
        return apply(self._graph, "sign", [x])

    def floor(self, x: Value) -> Value:
        return apply(self._graph, "floor", [x])

    def abs(self, x: Value) -> Value:
        return apply(self._graph, "absolute", [x])

    def isfinite(self, x: Value) -> Value:
        bad = [self._graph.node(op, [self.to_float(x)], shape=x.shape, dtype=BOOL) for op in ("IsNaN", "IsInf")]
        return apply(self._graph, "logical_not", [bad[0] | bad[1]])

    def minimum(self, x: Value, y: Value) -> Value:
        return apply(self._graph, "minimum", [x, y])

    def maximum(self, x: Value, y: Value) -> Value:
        return apply(self._graph, "maximum", [x, y])

    def clip(self, x: Value, low: Any, high: Any) -> Value:
        return self.minimum(self.maximum(x, low), high)

    def where(self, condition: Value, x: Any, y: Any) -> Value:
        yes, no = together(self._graph, [x, y])
        dtype = yes.dtype
        if dtype == BOOL:  # ONNX Runtime chooses among numbers only
            yes, no = yes.cast(np.uint8), no.cast(np.uint8)
        shape = np.broadcast_shapes(condition.shape, yes.shape, no.shape)
        return self._graph.node("Where", [condition.cast(BOOL), yes, no], shape=shape, dtype=yes.dtype).cast(dtype)

    def sum(self, x: Value, *, axis: int | None = None, keepdims: bool = False) -> Value:
        return self._reduced("ReduceSum", x, axis, keepdims=keepdims)

    def mean(self, x: Value, *, axis: int | None = None, keepdims: bool = False) -> Value:
        return self._reduced("ReduceMean", self.to_float(x), axis, keepdims=keepdims)

    def max(self, x: Value, *, axis: int = -1, keepdims: bool = False) -> Value:
        return self._reduced("ReduceMax", x, axis, keepdims=keepdims)

    def argmax(self, x: Value) -> Value:
        wide = x if x.dtype.kind == "f" else x.cast(np.float64)
        return self._graph.node("ArgMax", [wide], shape=x.shape[:-1], dtype=INT, axis=-1, keepdims=0)

    def cumsum(self, x: Value) -> Value:
        wide = _summable(x)
        return self._graph.node("CumSum", [wide, self._graph.constant(np.int64(-1))], shape=x.shape, dtype=wide.dtype)

    def pick(self, x: Value, index: Value) -> Value:
        where = self._unsqueeze(index.cast(INT), index.ndim)
        chosen = self._graph.node("GatherElements", [x, where], shape=where.shape, dtype=x.dtype, axis=-1)
        return self._graph.node("Squeeze", [chosen, self._numbers([-1])], shape=index.shape, dtype=x.dtype)

    def log_softmax(self, x: Value) -> Value:
        return self._graph.node("LogSoftmax", [x], shape=x.shape, dtype=x.dtype, axis=-1)

    def stop_gradient(self, x: Value) -> Value:
        return x

    def scan(
        self, step: Callable[..., tuple[tuple[Any, ...], Any]], initial: tuple[Any, ...], arrays: Sequence[Value]
    ) -> tuple[tuple[Any, ...], Value]:
        """All steps side by side in the graph; their number is static."""
        carry, found = initial, []
        for t in range(len(arrays[0])):
            carry, y = step(carry, *(array[t] for array in arrays))
            found.append(y)
        return carry, self.stack(found)

    def scan_reverse(self, step: Callable[..., Any], initial: Value, arrays: Sequence[Value]) -> Value:
        carry: Any = initial
        scanned: list[Any] = []
        for t in range(len(arrays[0]) - 1, -1, -1):
            carry = step(carry, *(array[t] for array in arrays))
            scanned.append(carry)
        return self.stack(scanned[::-1])

    def _same(self, op: str, x: Value) -> Value:
        return self._graph.node(op, [x], shape=x.shape, dtype=x.dtype)

    def _numbers(self, values: Sequence[int]) -> Value:
        return self._graph.constant(np.asarray(values, np.int64))

    def _unsqueeze(self, x: Value, axis: int) -> Value:
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
        return self._graph.node("Unsqueeze", [x, self._numbers([axis])], shape=shape, dtype=x.dtype)

    def _filled(self, x: Value, number: int) -> Value:
        size = self._graph.node("Shape", [x], shape=(x.ndim,), dtype=INT)
        return self._graph.node("Expand", [self._graph.constant(np.asarray(number, x.dtype)), size], shape=x.shape, dtype=x.dtype)

    def _reduced(self, op: str, x: Value, axis: int | None, *, keepdims: bool) -> Value:
        axes = list(range(x.ndim)) if axis is None else [axis % x.ndim]
        shape = tuple(1 if place in axes else size for place, size in enumerate(x.shape) if keepdims or place not in axes)
        wide = _summable(x)
        if not axes:
            return wide
        return self._graph.node(op, [wide, self._numbers(axes)], shape=shape, dtype=wide.dtype, keepdims=int(keepdims))


def _summable(x: Value) -> Value:
    """Booleans and small integers as int64."""
    return x if x.dtype.kind == "f" else x.cast(INT)


def _resolved(shape: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """`wanted` with -1 replaced."""
    known = math.prod(size for size in wanted if size != -1)
    return tuple(math.prod(shape) // known if size == -1 else size for size in wanted)
