"""An API run by torch eager under inference mode: prints and breakpoints inside a component work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.backends.torch.tensors import to_device
from rollstream.graph.declare import Component
from rollstream.graph.executable import empty_inputs, output_columns
from rollstream.graph.inputs import bind
from rollstream.graph.memory import Memory
from rollstream.graph.scope import Parameters, Scope

__all__ = ["TorchExecutable"]


class TorchExecutable:
    """See `rollstream.graph.executable.Build`. On the CPU it shares memory with its buffers and with `memory`; for any other device
    they are copied there at each run."""

    def __init__(self, component: Component, *, api: str, rows: int, memory: Memory, device: str = "cpu") -> None:
        self._arguments = component.arguments(api)
        self._api = getattr(component, api)
        self._memory = memory
        self._device = device
        self.inputs: Mapping[str, npt.NDArray[Any]] = empty_inputs(self._arguments, rows=rows)
        self._look()

    def run(self) -> Mapping[str, npt.NDArray[Any]]:
        with torch.inference_mode():
            if self._device != "cpu":
                self._look()
            outputs = self._api(self._scope, **self._bound)
            columns = outputs if type(outputs) is dict else output_columns(outputs)
            for name, value in self._written.items():
                self._remembered[name].copy_(value)
            if self._device != "cpu":
                columns = {name: column.cpu() for name, column in columns.items()}
            return {name: column.numpy() for name, column in columns.items()}

    def _look(self) -> None:
        """Where the numbers lie, as tensors."""
        memory, device = self._memory, self._device
        live, state = to_device(memory.live_views, device), to_device(memory.state_views, device)
        target = live if memory.target is None else to_device(memory.target_views, device)
        self._remembered = to_device(memory.state_views, "cpu")
        self._written: dict[str, Tensor] = {}
        parameters = Parameters(live=live, frozen=live, target=target, state=state, written=self._written)
        self._scope = Scope(TorchOps(device=device), parameters)
        self._bound = bind(self._arguments, to_device(self.inputs, device))
