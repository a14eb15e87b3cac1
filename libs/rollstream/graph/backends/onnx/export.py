"""A policy as one ONNX model: weights and state are constants, actions come out as the environment takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rollstream.graph.backends.onnx.graph import OPSET, Value
from rollstream.graph.backends.onnx.ops import OnnxOps
from rollstream.graph.backends.onnx.trace import trace
from rollstream.graph.declare import Component
from rollstream.graph.export.signature import Signature
from rollstream.graph.memory import Memory
from rollstream.spaces import Leaf

__all__ = ["ANY_ROWS", "onnx_model"]

ANY_ROWS = 7919
"""Stands for any number of rows while the model is made: a prime that is no usual size of a layer."""


def onnx_model(policy: Component, *, memory: Memory, signature: Signature) -> tuple[bytes, list[dict[str, Any]]]:
    """The serialized model, and its outputs for the metadata.

    Raises:
        UnsupportedOp: names what ONNX cannot do, and where the policy asks for it.
    """
    rows = signature.rows or ANY_ROWS
    traced = trace(
        policy, api=signature.api, rows=rows, memory=memory, place=lambda _: "constant", any_rows=signature.rows is None
    )
    ops = OnnxOps(traced.graph)
    outputs = {}
    for column, name in signature.outputs(list(traced.outputs)).items():
        leaf, value = signature.leaf(column), traced.outputs[column]
        outputs[name] = value if leaf is None else _as_the_environment_takes_it(ops, leaf, value)
    model = traced.graph.model(outputs)
    model.doc_string = f"Rollstream policy {type(policy).__name__}.{signature.api}, opset {OPSET}; see metadata.json"
    described = [
        {"name": name, "dtype": value.dtype.str, "shape": ["rows" if size == ANY_ROWS else size for size in value.shape]}
        for name, value in outputs.items()
    ]
    return model.SerializeToString(), described


def _as_the_environment_takes_it(ops: OnnxOps, leaf: Leaf, value: Value) -> Value:
    """In the leaf's dtype and, for a Box, within its bounds whatever rounding did."""
    dtype = np.dtype(leaf.dtype)
    if leaf.kind == "box":
        wide = value.cast(dtype if dtype.kind == "f" else np.float64)
        low, high = (np.reshape(bound, leaf.shape).astype(wide.dtype) for bound in (leaf.low, leaf.high))
        value = ops.clip(wide, low, high)
    return value.cast(dtype)
