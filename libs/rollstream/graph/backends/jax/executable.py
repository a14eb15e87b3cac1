"""An API compiled by XLA for a fixed number of rows; parameters come in as one flat vector at each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from rollstream.clock import SystemClock
from rollstream.graph.backends.jax.ops import JaxOps
from rollstream.graph.backends.jax.program import aligned_zeros, compile_program, split
from rollstream.graph.declare import Component
from rollstream.graph.executable import output_columns
from rollstream.graph.inputs import bind, flat_inputs
from rollstream.graph.memory import Memory
from rollstream.graph.scope import Parameters, Scope

__all__ = ["JaxExecutable"]


class JaxExecutable:
    """See `rollstream.graph.executable.Build`. Outputs are read-only; they are the caller's to keep.

    Attributes:
        report: what tracing and compiling took.
    """

    def __init__(self, component: Component, *, api: str, rows: int, memory: Memory) -> None:
        arguments = component.arguments(api)
        self.inputs: Mapping[str, npt.NDArray[Any]] = {
            item.name: aligned_zeros(item.full_shape(rows), item.dtype) for item in flat_inputs(arguments)
        }
        self._state = memory.state
        self._names: tuple[str, ...] = ()
        self._writes = False
        target = () if memory.target is None else (memory.target,)
        self._arguments = (memory.flat, memory.state, *target, *self.inputs.values())

        def run(flat: Any, state: Any, *rest: Any) -> tuple[Any, ...]:
            live, remembered = split(memory.layout, flat), split(memory.state_layout, state)
            aimed = split(memory.layout, rest[0]) if target else live
            written: dict[str, Any] = {}
            parameters = Parameters(live=live, frozen=live, target=aimed, state=remembered, written=written)
            columns = dict(zip(self.inputs, rest[len(target) :], strict=True))
            outputs = output_columns(getattr(component, api)(Scope(JaxOps(), parameters), **bind(arguments, columns)))
            self._names, self._writes = tuple(outputs), bool(written)
            found = [jnp.asarray(column) for column in outputs.values()]
            if written:
                found.append(jnp.concatenate([jnp.ravel(part) for part in {**remembered, **written}.values()]))
            return tuple(found)

        name = type(getattr(component, "part", component)).__name__  # of a part that is fed from outside, its own
        program = compile_program(run, self._arguments, what=f"{name}.{api}", clock=SystemClock())
        self.report = program.report
        self._program = program

    def run(self) -> Mapping[str, npt.NDArray[Any]]:
        found = self._program(*self._arguments)
        if self._writes:
            np.copyto(self._state, found[-1])
        return {name: np.asarray(column) for name, column in zip(self._names, found, strict=False)}
