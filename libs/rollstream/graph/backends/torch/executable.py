"""An API run by torch eager under inference mode: prints and breakpoints inside a component work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.declare import Component
from rollstream.graph.executable import empty_inputs, output_columns
from rollstream.graph.inputs import bind
from rollstream.graph.memory import Memory
from rollstream.graph.scope import Parameters, Scope

__all__ = ["TorchExecutable"]


class TorchExecutable:
    """See `rollstream.graph.executable.Build`. Shares memory with its buffers and with `memory`."""

    def __init__(self, component: Component, *, api: str, rows: int, memory: Memory) -> None:
        arguments = component.arguments(api)
        self.inputs: Mapping[str, npt.NDArray[Any]] = empty_inputs(arguments, rows=rows)
        tensors = {name: torch.from_numpy(buffer) for name, buffer in self.inputs.items()}
        live, self._state = _tensors(memory.live_views), _tensors(memory.state_views)
        self._written: dict[str, Tensor] = {}
        target = live if memory.target is None else _tensors(memory.target_views)
        parameters = Parameters(live=live, frozen=live, target=target, state=self._state, written=self._written)
        self._scope = Scope(TorchOps(), parameters)
        self._bound = bind(arguments, tensors)
        self._api = getattr(component, api)

    def run(self) -> Mapping[str, npt.NDArray[Any]]:
        with torch.inference_mode():
            outputs = output_columns(self._api(self._scope, **self._bound))
            for name, value in self._written.items():
                self._state[name].copy_(value)
            return {name: column.numpy() for name, column in outputs.items()}


def _tensors(views: Mapping[str, npt.NDArray[Any]]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(view) for name, view in views.items()}
