"""The whole update as one static program: traced once with `make_fx`, compiled by Inductor, called without Dynamo or guards.

    columns, settings --> forward, backward, clip, Adam, metrics --> written into the arrays of the update's state

Shapes are static because they come from spaces and `batch_rows`, so there is nothing that a guard could check at call time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rollstream.clock import Clock, SystemClock
from rollstream.errors import ConfigError
from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.inputs import bind, flat_inputs
from rollstream.graph.layout import FlatLayout
from rollstream.graph.optimizers.clipping import clip_scale
from rollstream.graph.report import Compiled
from rollstream.graph.scope import Parameters, Scope
from rollstream.graph.update_plan import UpdatePlan, UpdateState

__all__ = ["GraphEngine", "build_graph_engine"]

LEARNING_RATE = "learning_rate"


@dataclass(frozen=True, slots=True, kw_only=True)
class _StateTensors:
    """The arrays of an `UpdateState` as tensors on the same memory, in the order of the program's first arguments."""

    parameters: Tensor
    slots: Tensor
    state: Tensor
    count: Tensor
    target: Tensor
    sums: Tensor
    tally: Tensor

    @staticmethod
    def of(state: UpdateState) -> _StateTensors:
        return _StateTensors(**{name: torch.from_numpy(getattr(state, name)) for name in _StateTensors.__slots__})

    def flat(self) -> list[Tensor]:
        return [getattr(self, name) for name in _StateTensors.__slots__]


class _Program:
    """The update as a function of tensors only: state (changed in place), settings [S], columns."""

    def __init__(self, plan: UpdatePlan) -> None:
        self._plan = plan
        inputs = list(flat_inputs(plan.arguments))
        self.columns = [item.name for item in inputs if item.role == "column"]
        self.settings = [LEARNING_RATE, *(item.name for item in inputs if item.role == "scalar")]
        self.row_names: tuple[str, ...] = ()

    def __call__(self, *arguments: Tensor) -> list[Tensor]:
        count = len(_StateTensors.__slots__)
        state = _StateTensors(**dict(zip(_StateTensors.__slots__, arguments, strict=False)))
        settings = dict(zip(self.settings, arguments[count].unbind(), strict=True))
        return self._update(state, settings, dict(zip(self.columns, arguments[count + 1 :], strict=True)))

    def _update(self, state: _StateTensors, settings: Mapping[str, Tensor], columns: Mapping[str, Tensor]) -> list[Tensor]:
        plan, ops = self._plan, TorchOps()
        leaf = state.parameters.detach().requires_grad_()
        live, frozen = (_split(plan.layout, vector) for vector in (leaf, state.parameters))
        target = _split(plan.layout, state.target) if plan.uses_target else None
        scope = Scope(ops, Parameters(live=live, frozen=frozen, target=target, state=_split(plan.state_layout, state.state)))
        with torch.enable_grad():
            result = plan.loss.loss(scope, **bind(plan.arguments, {**columns, **settings}))
            (gradient,) = torch.autograd.grad(result.loss, leaf)
        loss = result.loss.detach()
        norm = torch.linalg.vector_norm(gradient)
        finite = torch.isfinite(norm) & torch.isfinite(loss)
        if plan.max_grad_norm is not None:
            gradient = gradient * clip_scale(ops, norm, max_norm=plan.max_grad_norm)
        rate = settings[LEARNING_RATE]
        if plan.rate_scale is not None:
            rate = rate * torch.from_numpy(plan.rate_scale)
        count = (state.count[0] + 1).to(torch.float32)
        after = plan.optimizer.step(ops, state.parameters, state.slots.unbind(), gradient, count=count, learning_rate=rate)
        applied = finite.to(torch.int64)
        sums = torch.cat([result.metrics, torch.stack([loss, norm])])
        state.parameters.copy_(torch.where(finite, after.parameters, state.parameters))
        if after.slots:
            state.slots.copy_(torch.where(finite, torch.stack(after.slots), state.slots))
        state.count.add_(applied)
        state.sums.add_(torch.where(finite, sums, torch.zeros_like(sums)))
        state.tally.add_(torch.stack([applied, 1 - applied]))
        self.row_names = tuple(result.rows)
        return list(result.rows.values())


class GraphEngine:
    """See `rollstream.graph.update_plan.Engine`."""

    def __init__(
        self, plan: UpdatePlan, program: _Program, compiled: Callable[..., Sequence[Tensor]], state: UpdateState
    ) -> None:
        self._plan = plan
        self._compiled = compiled
        self._columns = program.columns
        self._row_names = program.row_names
        self._settings = program.settings
        self._state = _StateTensors.of(state).flat()
        self._values = np.zeros(len(program.settings), np.float32)
        self._arguments = [*self._state, torch.from_numpy(self._values)]
        self._rows: Sequence[Tensor] = ()

    def stage(self, buffers: Mapping[str, npt.NDArray[Any]]) -> Sequence[tuple[Tensor, ...]]:
        parts = [torch.split(torch.from_numpy(buffers[name]), self._plan.batch_rows) for name in self._columns]
        return list(zip(*parts, strict=True))

    def step(self, minibatch: Any, *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        values = self._values
        values[0] = learning_rate
        for place, name in enumerate(self._settings[1:], start=1):
            values[place] = scalars[name]
        self._rows = self._compiled(*self._arguments, *minibatch)

    def rows(self) -> Mapping[str, npt.NDArray[Any]]:
        return {name: column.numpy() for name, column in zip(self._row_names, self._rows, strict=True)}


def build_graph_engine(plan: UpdatePlan, state: UpdateState, *, clock: Clock | None = None) -> tuple[GraphEngine, Compiled]:
    """Trace and compile the update.

    Raises:
        ConfigError: there is no C++ compiler, or Inductor fails; names the reason and what to use instead.
    """
    from torch._inductor import compile as inductor_compile
    from torch.fx.experimental.proxy_tensor import make_fx

    timer = clock or SystemClock()
    start_s = timer.monotonic_s()
    _require_compiler()
    program = _Program(plan)
    example = UpdateState.start(plan, state.parameters)  # tracing runs the update: not on the real state
    columns = [
        torch.from_numpy(np.ones(item.full_shape(plan.batch_rows), item.dtype))
        for item in flat_inputs(plan.arguments)
        if item.role == "column"
    ]
    arguments: list[Any] = [*_StateTensors.of(example).flat(), torch.zeros(len(program.settings)), *columns]
    try:
        graph = make_fx(program)(*arguments)
        traced_s = timer.monotonic_s()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Inductor about itself
            compiled = inductor_compile(graph, arguments)
            compiled(*arguments)  # what is compiled lazily is compiled now
    except Exception as error:
        raise ConfigError(f"mode 'torch-graph' could not be built: {_first_line(error)}; use mode 'torch'") from error
    report = Compiled(nodes=len(graph.graph.nodes), trace_s=traced_s - start_s, compile_s=timer.monotonic_s() - traced_s)
    return GraphEngine(plan, program, compiled, state), report


def _split(layout: FlatLayout, flat: Tensor) -> dict[str, Tensor]:
    parts = torch.split(flat, [parameter.size for parameter in layout.parameters]) if layout.parameters else ()
    return {parameter.name: part.view(parameter.shape) for parameter, part in zip(layout.parameters, parts, strict=True)}


def _require_compiler() -> None:
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler as error:
        raise ConfigError(
            "mode 'torch-graph' needs a C++ compiler, and none was found; install g++ or use mode 'torch'"
        ) from error


def _first_line(error: Exception) -> str:
    text = str(error).strip() or repr(error)
    return f"{type(error).__name__}: {text.splitlines()[0][:300]}"
