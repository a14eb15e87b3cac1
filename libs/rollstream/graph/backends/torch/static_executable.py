"""An API as a static program: traced from the shapes of its inputs, compiled when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from rollstream.clock import Clock, SystemClock
from rollstream.graph.backends.torch.compiling import CompiledProgram, StaticMode
from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.backends.torch.tensors import split
from rollstream.graph.declare import Component
from rollstream.graph.executable import empty_inputs, output_columns
from rollstream.graph.inputs import bind
from rollstream.graph.memory import Memory
from rollstream.graph.scope import Parameters, Scope

__all__ = ["StaticExecutable"]


class StaticExecutable:
    """See `rollstream.graph.executable.Build`; `mode` and `device` come first, from `functools.partial`.

    Attributes:
        report: what compiling took.
    """

    def __init__(
        self,
        component: Component,
        *,
        api: str,
        rows: int,
        memory: Memory,
        mode: StaticMode,
        device: str = "cpu",
        clock: Clock | None = None,
    ) -> None:
        self._arguments = component.arguments(api)
        self._api = getattr(component, api)
        self._memory = memory
        self._device = device
        self._names: tuple[str, ...] = ()
        self.inputs: Mapping[str, npt.NDArray[Any]] = empty_inputs(self._arguments, rows=rows)
        target = memory.flat if memory.target is None else memory.target
        arrays = [memory.flat, target, memory.state, *self.inputs.values()]
        self._shared = [torch.from_numpy(array) for array in arrays]
        with torch.no_grad():
            examples = [tensor.clone().to(device) for tensor in self._shared]
            self._program = CompiledProgram(self._function, examples, mode=mode, clock=clock or SystemClock())
        self.report = self._program.report

    @property
    def recompiles(self) -> int:
        """How often it was compiled again after it was made."""
        return self._program.compiles - 1

    def run(self) -> Mapping[str, npt.NDArray[Any]]:
        with torch.no_grad():
            if self._device == "cpu":
                found = self._program(*self._shared)
            else:
                there = [tensor.to(self._device) for tensor in self._shared]
                found = self._program(*there)
                self._shared[2].copy_(there[2])
        return {name: column.cpu().numpy() for name, column in zip(self._names, found, strict=True)}

    def _function(self, flat: Tensor, target: Tensor, state: Tensor, *inputs: Tensor) -> list[Tensor]:
        """Parameters [P], those of the target network [P], state [S] (changed in place), inputs -> outputs."""
        memory = self._memory
        live, remembered = split(memory.layout, flat), split(memory.state_layout, state)
        written: dict[str, Tensor] = {}
        parameters = Parameters(live=live, frozen=live, target=split(memory.layout, target), state=remembered, written=written)
        scope = Scope(TorchOps(device=self._device), parameters)
        outputs = output_columns(self._api(scope, **bind(self._arguments, dict(zip(self.inputs, inputs, strict=True)))))
        self._names = tuple(outputs)
        found = [column.clone() for column in outputs.values()]  # an output may be a piece of the state that is written below
        for name, value in written.items():
            remembered[name].copy_(value)
        return found
