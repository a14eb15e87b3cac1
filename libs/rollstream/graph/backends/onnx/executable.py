"""An API run by ONNX Runtime, on one thread, from and into buffers that stay where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from rollstream.graph.backends.onnx.trace import Traced, trace
from rollstream.graph.declare import Component
from rollstream.graph.executable import empty_inputs
from rollstream.graph.memory import Memory

__all__ = ["PACK_AFTER_ROWS", "OnnxExecutable", "PackedOnnxExecutable", "session_of"]

PACK_AFTER_ROWS = 96
"""Rows after which packing parameters pays: it costs 8 to 15 ms, and saves 0.08 to 0.1 ms a row (docs/decisions/0019)."""


class OnnxExecutable:
    """See `rollstream.graph.executable.Build`. Parameters and state are inputs, so they are read where they lie."""

    def __init__(self, component: Component, *, api: str, rows: int, memory: Memory) -> None:
        self.inputs: Mapping[str, npt.NDArray[Any]] = empty_inputs(component.arguments(api), rows=rows)
        traced = trace(component, api=api, rows=rows, memory=memory, place=lambda _: "input")
        state = memory.state_views
        self._outputs = {name: np.zeros(value.shape, value.dtype) for name, value in traced.outputs.items()}
        fresh = {name: np.zeros(value.shape, value.dtype) for name, value in traced.written.items()}
        self._written = [(state[name], array) for name, array in fresh.items()]
        self._results = {_given(name): array for name, array in self._outputs.items()} | {
            _new(name): array for name, array in fresh.items()
        }
        self._session, self._binding = self._bound(_model(traced), traced.used)

    def run(self) -> Mapping[str, npt.NDArray[Any]]:
        self._session.run_with_iobinding(self._binding)
        for state, fresh in self._written:
            np.copyto(state, fresh)
        return self._outputs

    def _bound(
        self, model: bytes, used: Mapping[str, npt.NDArray[Any]], *, outside: Mapping[str, npt.NDArray[Any]] | None = None
    ) -> tuple[Any, Any]:
        """A session, tied to the buffers of this executable."""
        session = session_of(model, outside=outside)
        binding = session.io_binding()
        for item in session.get_inputs():
            array = self.inputs[item.name] if item.name in self.inputs else used[item.name]
            binding.bind_input(item.name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        for name, array in self._results.items():
            binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        return session, binding


class PackedOnnxExecutable(OnnxExecutable):
    """Becomes one with parameters as constants, which ONNX Runtime lays out for its kernels once and not at each run.

    Whoever changes parameters has to say so by `repack`. After that they are inputs again, until so many rows were run that making
    the session anew pays (`PACK_AFTER_ROWS`): an actor that gets new weights every few steps never pays for what it does not use.
    """

    def __init__(self, component: Component, *, api: str, rows: int, memory: Memory) -> None:
        super().__init__(component, api=api, rows=rows, memory=memory)
        self._plain = self._session, self._binding
        self._rows = rows
        self._rows_since_change: int | None = 0
        traced = trace(component, api=api, rows=rows, memory=memory, place=lambda kind: "input" if kind == "state" else "outside")
        self._used = traced.used
        self._model = _model(traced)

    def repack(self) -> None:
        """The parameters have changed."""
        self._session, self._binding = self._plain
        self._rows_since_change = 0

    def run(self) -> Mapping[str, npt.NDArray[Any]]:
        if self._rows_since_change is not None:
            self._rows_since_change += self._rows
            if self._rows_since_change > PACK_AFTER_ROWS:
                self._pack()
        return super().run()

    def _pack(self) -> None:
        parameters = {name: array for name, array in self._used.items() if not name.startswith("state:")}
        self._session, self._binding = self._bound(self._model, self._used, outside=parameters)
        self._rows_since_change = None


def session_of(model: bytes, *, outside: Mapping[str, npt.NDArray[Any]] | None = None) -> onnxruntime.InferenceSession:
    """A session of one thread.

    Args:
        outside: constants that are not in the model, by name. They must stay as they are as long as the session is used.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if outside:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in outside.values()]
        options.add_external_initializers(list(outside), values)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _model(traced: Traced) -> bytes:
    outputs = {_given(name): value for name, value in traced.outputs.items()}
    made: bytes = traced.graph.model(outputs | {_new(name): value for name, value in traced.written.items()}).SerializeToString()
    return made


def _given(column: str) -> str:
    """Name of an output; inputs may have the column's own."""
    return f"={column}"


def _new(state: str) -> str:
    return f"={state}:new"
