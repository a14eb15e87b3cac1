"""An API run by ONNX Runtime, on one thread, from and into buffers that stay where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from rollstream.graph.backends.onnx.trace import trace
from rollstream.graph.declare import Component
from rollstream.graph.executable import empty_inputs
from rollstream.graph.memory import Memory

__all__ = ["OnnxExecutable", "PackedOnnxExecutable", "session_of"]


class OnnxExecutable:
    """See `rollstream.graph.executable.Build`. Parameters and state are inputs, so they are read where they lie."""

    packed = False

    def __init__(self, component: Component, *, api: str, rows: int, memory: Memory) -> None:
        self.inputs: Mapping[str, npt.NDArray[Any]] = empty_inputs(component.arguments(api), rows=rows)
        traced = trace(component, api=api, rows=rows, memory=memory, constant=lambda kind: self.packed and kind != "state")
        state = memory.state_views
        self._outputs = {name: np.zeros(value.shape, value.dtype) for name, value in traced.outputs.items()}
        fresh = {name: np.zeros(value.shape, value.dtype) for name, value in traced.written.items()}
        self._written = [(state[name], array) for name, array in fresh.items()]
        self._used = traced.used
        self._model = traced.graph.model(
            {f"={name}": value for name, value in traced.outputs.items()}
            | {f"={name}:new": value for name, value in traced.written.items()}
        )
        self._sources = {**self.inputs, **traced.used}
        self._results = {f"={name}": array for name, array in self._outputs.items()} | {
            f"={name}:new": array for name, array in fresh.items()
        }
        self._open()

    def run(self) -> Mapping[str, npt.NDArray[Any]]:
        self._session.run_with_iobinding(self._binding)
        for state, fresh in self._written:
            np.copyto(state, fresh)
        return self._outputs

    def _open(self) -> None:
        self._session = session_of(self._model.SerializeToString())
        self._binding = self._session.io_binding()
        for item in self._session.get_inputs():
            array = self._sources[item.name]
            self._binding.bind_input(item.name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        for name, array in self._results.items():
            self._binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)


class PackedOnnxExecutable(OnnxExecutable):
    """Parameters are constants of the model, so that ONNX Runtime lays them out for its kernels once and not at each run.

    Whoever changes parameters has to say so by `repack`; the model is then made again at the next run.
    """

    packed = True
    _stale = False

    def repack(self) -> None:
        """The parameters have changed."""
        self._stale = True

    def run(self) -> Mapping[str, npt.NDArray[Any]]:
        if self._stale:
            for constant in self._model.graph.initializer:
                if constant.name in self._used:
                    constant.raw_data = self._used[constant.name].tobytes()
            self._open()
            self._stale = False
        return super().run()


def session_of(model: bytes) -> onnxruntime.InferenceSession:
    """A session of one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
