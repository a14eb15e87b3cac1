"""An ONNX graph that grows while a component runs.

    component.act(scope, ...)  --runs once on `Value`s-->  nodes, constants  --`Graph.model`-->  ModelProto

Shapes are static, so each `Value` knows its shape and dtype, and no tracer and no other framework is needed: the graph of a CNN policy is
there in a few milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from numpy.lib.mixins import NDArrayOperatorsMixin
from onnx import helper, numpy_helper

from rollstream.graph.unsupported import UnsupportedOp

__all__ = ["OPSET", "Graph", "Value"]

OPSET = 18
"""The first operator set whose reductions take axes as inputs."""
IR_VERSION = 8
SHARED_CONSTANT_BYTES = 64
"""Constants up to this size are kept once per graph."""


class Graph:
    """Nodes in order, constants, and inputs.

    Args:
        rows: number of rows that stands for any number: where it appears in a shape, the model has the dimension `rows` instead. It has to
            be one that no other dimension can be mistaken for. None: shapes are as they are.
    """

    def __init__(self, *, rows: int | None = None) -> None:
        self._rows = rows
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._shared: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
        self._count = 0

    @property
    def nodes(self) -> int:
        """How many operations there are."""
        return len(self._nodes)

    def uses(self, op: str) -> bool:
        """Whether some operation is of this type."""
        return any(node.op_type == op for node in self._nodes)

    def input(self, name: str, *, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Value:
        """An array that each run gives."""
        kind = np.dtype(dtype)
        self._inputs.append(self._described(name, shape, kind))
        return Value(self, name, shape, kind)

    def constant(self, array: npt.ArrayLike, *, name: str | None = None) -> Value:
        """An array that never changes; with a name, one that the model's owner can find."""
        dense = np.asarray(array)
        key = (dense.dtype.str, dense.shape, dense.tobytes()) if name is None and dense.nbytes <= SHARED_CONSTANT_BYTES else None
        if key is not None and key in self._shared:
            return self._shared[key]
        if self._rows is not None and any(size % self._rows == 0 for size in dense.shape if size):
            raise UnsupportedOp(
                "a constant has one entry for each row, so the model cannot take any number of rows; fix the number (--batch)"
            )
        value = Value(self, name or self._name(), dense.shape, dense.dtype)
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(dense).reshape(dense.shape), value.name))
        if key is not None:
            self._shared[key] = value
        return value

    def outside(self, name: str, *, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Value:
        """A constant whose numbers are not in the model: a session gets them with its options."""
        kind = np.dtype(dtype)
        tensor = onnx.TensorProto(name=name, dims=shape, data_type=helper.np_dtype_to_tensor_dtype(kind))
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "memory"), ("offset", "0"), ("length", str(math.prod(shape) * kind.itemsize))):
            tensor.external_data.add(key=key, value=value)
        self._constants.append(tensor)
        return Value(self, name, shape, kind)

    def node(self, op: str, inputs: Sequence[Value], *, shape: tuple[int, ...], dtype: npt.DTypeLike, **attributes: Any) -> Value:
        """The one output of an operation."""
        value = Value(self, self._name(), shape, np.dtype(dtype))
        self._nodes.append(helper.make_node(op, [item.name for item in inputs], [value.name], **attributes))
        return value

    def target_shape(self, shape: tuple[int, ...]) -> Value:
        """A shape as the input of Reshape."""
        if self._rows is None:
            return self.constant(np.asarray(shape, np.int64))
        return self.constant(np.asarray([-1 if size and size % self._rows == 0 else size for size in shape], np.int64))

    def model(self, outputs: Mapping[str, Value]) -> onnx.ModelProto:
        """The whole, with outputs by name."""
        nodes = list(self._nodes)
        described = []
        for name, value in outputs.items():
            nodes.append(helper.make_node("Identity", [value.name], [name]))
            described.append(self._described(name, value.shape, value.dtype))
        graph = helper.make_graph(nodes, "rollstream", self._inputs, described, self._constants)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="rollstream"
        )

    def _name(self) -> str:
        self._count += 1
        return f"%{self._count}"

    def _described(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> onnx.ValueInfoProto:
        sizes = [("rows" if size == self._rows else size) for size in shape]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), sizes)


class Value(NDArrayOperatorsMixin):
    """An array of the graph. Operators (and NumPy functions that are operators) add to the graph."""

    __slots__ = ("dtype", "graph", "name", "shape")

    def __init__(self, graph: Graph, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.graph = graph
        self.name = name
        self.shape = tuple(int(size) for size in shape)
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        raise UnsupportedOp("mode 'onnx' cannot branch on an array's contents; use ops.where")

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(np.ndarray, name):
            raise UnsupportedOp(f"mode 'onnx' cannot do the array's own {name}; use the function of ops")
        raise AttributeError(f"an array in mode 'onnx' has no attribute {name!r}; use the functions of ops")

    def __getitem__(self, key: Any) -> Value:
        keys = _full_key(key, self.ndim)
        starts, ends, axes, steps, axis, reshaped = [], [], [], [], 0, False
        for item in keys:
            if item is None:
                reshaped = True
                continue
            if isinstance(item, (int, np.integer)):
                reshaped = True
                first = int(item) % self.shape[axis]
                span = (first, first + 1, 1)
            elif isinstance(item, slice) and (item.step or 1) > 0:
                span = item.indices(self.shape[axis])
            else:
                raise UnsupportedOp(
                    f"mode 'onnx' cannot index with {_kind(item)}; use ranges, numbers and None, or ops.take, ops.pick"
                )
            if span != (0, self.shape[axis], 1):
                starts.append(span[0])
                ends.append(span[1])
                steps.append(span[2])
                axes.append(axis)
            axis += 1
        shape = np.broadcast_to(np.empty((), bool), self.shape)[key].shape
        value = self
        if axes:
            bounds = [self.graph.constant(np.asarray(part, np.int64)) for part in (starts, ends, axes, steps)]
            between = list(self.shape)
            for start, end, at, step in zip(starts, ends, axes, steps, strict=True):
                between[at] = len(range(start, end, step))
            value = self.graph.node("Slice", [self, *bounds], shape=tuple(between), dtype=self.dtype)
        return value.reshaped(shape) if reshaped else value

    def reshaped(self, shape: tuple[int, ...]) -> Value:
        """The same numbers in another shape."""
        return self.graph.node("Reshape", [self, self.graph.target_shape(shape)], shape=shape, dtype=self.dtype)

    def cast(self, dtype: npt.DTypeLike) -> Value:
        """The same as another dtype."""
        kind = np.dtype(dtype)
        if kind == self.dtype:
            return self
        return self.graph.node("Cast", [self], shape=self.shape, dtype=kind, to=helper.np_dtype_to_tensor_dtype(kind))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Value:
        from rollstream.graph.backends.onnx.elementwise import apply

        if method != "__call__" or kwargs:
            raise UnsupportedOp(f"mode 'onnx' cannot do numpy.{ufunc.__name__}.{method}; use the function of ops")
        return apply(self.graph, ufunc.__name__, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Value:
        raise UnsupportedOp(f"mode 'onnx' cannot do numpy.{function.__name__}; use the function of ops")


def _kind(item: Any) -> str:
    return repr(item) if isinstance(item, slice) else f"a {type(item).__name__}"


def _full_key(key: Any, ndim: int) -> list[Any]:
    """The key with `...` written out and one entry for each axis (and each None)."""
    keys = list(key) if isinstance(key, tuple) else [key]
    missing = ndim - sum(item is not None and item is not Ellipsis for item in keys)
    places = [place for place, item in enumerate(keys) if item is Ellipsis]
    if places:
        keys[places[0] : places[0] + 1] = [slice(None)] * missing
    else:
        keys += [slice(None)] * missing
    return keys
