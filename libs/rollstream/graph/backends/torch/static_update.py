"""Updates as a static program, traced and compiled once, see `program` and `compiling`. The minibatch loop stays outside.

One minibatch of 256 rows of a small network takes some 250 microseconds, and calling the program some 20: a loop unrolled inside would save
little, and multiply the compile time by the number of minibatches, which may vary from round to round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rollstream.clock import Clock
from rollstream.graph.backends.torch.compiling import CompiledProgram, Function, StaticMode
from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.backends.torch.program import UpdateProgram
from rollstream.graph.backends.torch.tensors import StateTensors
from rollstream.graph.inputs import flat_inputs
from rollstream.graph.report import Compiled
from rollstream.graph.torch_options import TorchOptions
from rollstream.graph.update_plan import UpdatePlan, UpdateState

__all__ = ["ProgramEngine", "StaticEngine", "examples_of"]


class ProgramEngine:
    """Runs a whole update that someone compiled. See `rollstream.graph.update_plan.Engine`."""

    def __init__(
        self,
        run: Function,
        plan: UpdatePlan,
        state: UpdateState,
        *,
        columns: Sequence[str],
        settings: Sequence[str],
        row_names: Sequence[str],
        device: str = "cpu",
    ) -> None:
        self._run = run
        self._plan = plan
        self._columns = columns
        self._settings = settings
        self._row_names = row_names
        self._device = device
        self._state = StateTensors(state, device=device)
        self._values = np.zeros(len(settings), np.float32)
        self._given = torch.from_numpy(self._values)
        self._arguments = [*self._state.flat(), self._given]
        self._rows: Sequence[Tensor] = ()
        self.pull, self.push = self._state.pull, self._state.push

    def stage(self, buffers: Mapping[str, npt.NDArray[Any]]) -> Sequence[tuple[Tensor, ...]]:
        parts = [torch.split(torch.from_numpy(buffers[name]), self._plan.batch_rows) for name in self._columns]
        return list(zip(*parts, strict=True))

    def step(self, minibatch: Any, *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        values = self._values
        values[0] = learning_rate
        for place, name in enumerate(self._settings[1:], start=1):
            values[place] = scalars[name]
        if self._device == "cpu":
            self._rows = self._run(*self._arguments, *minibatch)
        else:
            given = (self._given.to(self._device), *(column.to(self._device) for column in minibatch))
            self._rows = self._run(*self._state.flat(), *given)

    def rows(self) -> Mapping[str, npt.NDArray[Any]]:
        return {name: column.cpu().numpy() for name, column in zip(self._row_names, self._rows, strict=True)}


class StaticEngine(ProgramEngine):
    """A `ProgramEngine` that compiles its program.

    Attributes:
        report: what that took.
    """

    def __init__(self, plan: UpdatePlan, state: UpdateState, *, mode: StaticMode, options: TorchOptions, clock: Clock) -> None:
        device = options.device
        program = UpdateProgram(plan, TorchOps(device=device, mixed=options.mixed_precision), accumulate=options.accumulate)
        examples = examples_of(plan, state, device=device)
        self._ranks = options.ranks
        if self._ranks is None:
            self._programs = [CompiledProgram(program.whole, examples, mode=mode, clock=clock)]
        else:
            before = len(examples) - len(program.columns)
            packed = torch.ones(plan.layout.size + len(plan.metric_names), device=device)
            self._programs = [
                CompiledProgram(program.backward, examples, mode=mode, clock=clock),
                CompiledProgram(program.apply, [*examples[:before], packed], mode=mode, clock=clock),
            ]
            self._before = before
        super().__init__(
            self._programs[0] if self._ranks is None else self._in_two,
            plan,
            state,
            columns=program.columns,
            settings=program.settings,
            row_names=program.row_names,
            device=device,
        )
        first, *rest = (built.report for built in self._programs)
        self.report = first if not rest else _added(first, rest[0])

    @property
    def recompiles(self) -> int:
        """How often a program was compiled again after it was made: 0, unless something is wrong."""
        return sum(built.compiles for built in self._programs) - len(self._programs)

    def _in_two(self, *arguments: Tensor) -> Sequence[Tensor]:
        """Backward on this rank, sum over all ranks, apply."""
        assert self._ranks is not None
        packed, *rows = self._programs[0](*arguments)
        self._ranks.add_up(packed)
        self._programs[1](*arguments[: self._before], packed)
        return rows


def examples_of(plan: UpdatePlan, state: UpdateState, *, device: str) -> list[Tensor]:
    """Arguments of the program to trace with. Tracing runs the update, so they are not the real state."""
    example = UpdateState.start(plan, state.parameters)
    inputs = list(flat_inputs(plan.arguments))
    settings = torch.zeros(1 + sum(item.role == "scalar" for item in inputs), device=device)
    columns = [
        torch.from_numpy(np.ones(item.full_shape(plan.batch_rows), item.dtype)).to(device)
        for item in inputs
        if item.role == "column"
    ]
    return [*StateTensors(example, device=device).flat(), settings, *columns]


def _added(one: Compiled, other: Compiled) -> Compiled:
    return Compiled(nodes=one.nodes + other.nodes, trace_s=one.trace_s + other.trace_s, compile_s=one.compile_s + other.compile_s)
