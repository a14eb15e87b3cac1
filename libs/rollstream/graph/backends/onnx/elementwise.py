"""Elementwise functions of ONNX values: dtypes promoted, shapes broadcast, NumPy's names.

ONNX Runtime computes in float, int64 and bool only, so small integers become int64, and what NumPy would make float64 out of float32 and
integers stays float32, as in every other mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rollstream.graph.backends.onnx.graph import Graph, Value
from rollstream.graph.unsupported import UnsupportedOp

__all__ = ["apply", "together"]

BOOL, INT, FLOAT = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float32)

ARITHMETIC = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "minimum": "Min", "maximum": "Max"}
COMPARISON = {
    "less": "Less",
    "less_equal": "LessOrEqual",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "equal": "Equal",
}
LOGIC = {
    "bitwise_and": "And",
    "logical_and": "And",
    "bitwise_or": "Or",
    "logical_or": "Or",
    "bitwise_xor": "Xor",
    "logical_xor": "Xor",
}
FLOATING = {"exp": "Exp", "log": "Log", "sqrt": "Sqrt", "tanh": "Tanh", "floor": "Floor"}


def apply(graph: Graph, name: str, inputs: Sequence[Any]) -> Value:
    """What the NumPy function `name` makes of the inputs: values, NumPy arrays, numbers.

    Raises:
        UnsupportedOp: ONNX has no such function.
    """
    if name in _COMPOSED:
        return _COMPOSED[name](graph, inputs)
    if name in FLOATING:
        x = graph_value(graph, inputs[0])
        x = x if x.dtype.kind == "f" else x.cast(FLOAT)
        return graph.node(FLOATING[name], [x], shape=x.shape, dtype=x.dtype)
    op = ARITHMETIC.get(name) or COMPARISON.get(name) or LOGIC.get(name)
    if op is None:
        raise UnsupportedOp(f"mode 'onnx' cannot do numpy.{name}; use the function of ops, or mode 'torch'")
    x, y = together(graph, inputs)
    if name in LOGIC:
        x, y = x.cast(BOOL), y.cast(BOOL)
    elif x.dtype == BOOL and op != "Equal":
        x, y = x.cast(INT), y.cast(INT)
    return _two(graph, op, x, y, dtype=BOOL if name not in ARITHMETIC else x.dtype)


def graph_value(graph: Graph, x: Any) -> Value:
    """A value of the graph; NumPy arrays and numbers become constants."""
    return x if isinstance(x, Value) else graph.constant(np.asarray(x))


def together(graph: Graph, inputs: Sequence[Any]) -> list[Value]:
    """All as values of one dtype. Plain numbers take the dtype of the arrays, as in NumPy."""
    plain = [isinstance(x, (bool, int, float)) for x in inputs]
    kinds = [np.asarray(x).dtype if not isinstance(x, Value) else x.dtype for x in inputs]
    arrays = [kind for kind, number in zip(kinds, plain, strict=True) if not number]
    dtype = _common(arrays)
    if dtype.kind != "f" and any(isinstance(x, float) for x, number in zip(inputs, plain, strict=True) if number):
        dtype = FLOAT
    elif dtype == BOOL and any(number and not isinstance(x, bool) for x, number in zip(inputs, plain, strict=True)):
        dtype = INT
    return [x.cast(dtype) if isinstance(x, Value) else graph.constant(np.asarray(x).astype(dtype)) for x in inputs]


def _common(kinds: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    floats = [kind for kind in kinds if kind.kind == "f"]
    if floats:
        return FLOAT if FLOAT in floats else np.result_type(*floats)
    return BOOL if all(kind == BOOL for kind in kinds) else INT


def _two(graph: Graph, op: str, x: Value, y: Value, *, dtype: np.dtype[Any]) -> Value:
    return graph.node(op, [x, y], shape=np.broadcast_shapes(x.shape, y.shape), dtype=dtype)


def _divide(graph: Graph, inputs: Sequence[Any]) -> Value:
    x, y = together(graph, inputs)
    if x.dtype.kind != "f":
        x, y = x.cast(FLOAT), y.cast(FLOAT)
    return _two(graph, "Div", x, y, dtype=x.dtype)


def _power(graph: Graph, inputs: Sequence[Any]) -> Value:
    base, exponent = inputs
    if isinstance(exponent, int) and exponent == 2:
        return apply(graph, "multiply", (base, base))
    x, y = together(graph, inputs)
    return _two(graph, "Pow", x, y, dtype=x.dtype)


def _negative(graph: Graph, inputs: Sequence[Any]) -> Value:
    return _signed(graph, "Neg", inputs)


def _absolute(graph: Graph, inputs: Sequence[Any]) -> Value:
    return _signed(graph, "Abs", inputs)


def _sign(graph: Graph, inputs: Sequence[Any]) -> Value:
    return _signed(graph, "Sign", inputs)


def _signed(graph: Graph, op: str, inputs: Sequence[Any]) -> Value:
    (x,) = together(graph, inputs)
    return graph.node(op, [x], shape=x.shape, dtype=x.dtype)


def _not(graph: Graph, inputs: Sequence[Any]) -> Value:
    x = graph_value(graph, inputs[0]).cast(BOOL)
    return graph.node("Not", [x], shape=x.shape, dtype=BOOL)


def _not_equal(graph: Graph, inputs: Sequence[Any]) -> Value:
    return _not(graph, [apply(graph, "equal", inputs)])


def _remainder(graph: Graph, inputs: Sequence[Any]) -> Value:
    """With the divisor's sign, as in Python."""
    x, y = together(graph, inputs)
    if x.dtype.kind == "f":
        return apply(graph, "subtract", [x, _floor_divide(graph, [x, y]) * y])
    return _two(graph, "Mod", x, y, dtype=x.dtype)


def _floor_divide(graph: Graph, inputs: Sequence[Any]) -> Value:
    x, y = together(graph, inputs)
    if x.dtype.kind == "f":
        return apply(graph, "floor", [x / y])
    return _two(graph, "Div", x - _remainder(graph, [x, y]), y, dtype=x.dtype)


_COMPOSED: Mapping[str, Callable[[Graph, Sequence[Any]], Value]] = {
    "true_divide": _divide,
    "divide": _divide,
    "power": _power,
    "negative": _negative,
    "absolute": _absolute,
    "sign": _sign,
    "invert": _not,
    "logical_not": _not,
    "not_equal": _not_equal,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
}
