"""One API of a component, ready to run at a fixed number of rows: fill `inputs`, call `run`, read the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.backends.numpy_tape import Recorded, Tape
from rollstream.graph.declare import Component
from rollstream.graph.inputs import Arguments, bind, flat_inputs
from rollstream.graph.memory import Memory
from rollstream.graph.ops import Array
from rollstream.graph.scope import Parameters, Scope

__all__ = ["Build", "Executable", "NumpyExecutable", "empty_inputs", "output_columns"]


class Executable(Protocol):
    """An API in some mode. Made by `Build`: parameters and state are read where they lie, and new state is written there.

    Attributes:
        inputs: buffers to fill, by input name.
    """

    inputs: Mapping[str, npt.NDArray[Any]]

    def run(self) -> Mapping[str, npt.NDArray[Any]]:
        """Outputs by column name; may be overwritten by the next run."""
        ...


class Build(Protocol):
    """Makes the executable of one API; each mode has one."""

    def __call__(self, component: Component, *, api: str, rows: int, memory: Memory) -> Executable: ...


class NumpyExecutable:
    """The taped form, see `backends.numpy_tape`."""

    def __init__(self, component: Component, *, api: str, rows: int, memory: Memory) -> None:
        arguments = component.arguments(api)
        self.inputs: Mapping[str, npt.NDArray[Any]] = empty_inputs(arguments, rows=rows)
        tape = Tape()
        live, target, state = (
            {name: tape.input(view) for name, view in views.items()}
            for views in (memory.live_views, memory.target_views, memory.state_views)
        )
        parameters = Parameters(live=live, frozen=live, target=target, state=state, written={})
        scope = Scope(NumpyOps(), parameters)
        recorded = {name: tape.input(buffer) for name, buffer in self.inputs.items()}
        with np.errstate(all="ignore"):  # the first run sees zeros
            outputs = output_columns(getattr(component, api)(scope, **bind(arguments, recorded)))
        for name, value in (parameters.written or {}).items():
            tape.record(np.copyto, state[name].array, value.array if isinstance(value, Recorded) else value)
        self._outputs = {name: column.array if isinstance(column, Recorded) else column for name, column in outputs.items()}
        self._run = tape.run

    def run(self) -> Mapping[str, npt.NDArray[Any]]:
        self._run()
        return self._outputs


def empty_inputs(arguments: Arguments, *, rows: int) -> dict[str, npt.NDArray[Any]]:
    """A zero buffer for each input."""
    return {item.name: np.zeros(item.full_shape(rows), item.dtype) for item in flat_inputs(arguments)}


def output_columns(outputs: Any) -> dict[str, Array]:
    """What an API returned, by name: columns, the fields of a record (None left out), or one array called `output`; for an API
    that only sets state and returns None, nothing."""
    if outputs is None:
        return {}
    if isinstance(outputs, Mapping):
        return dict(outputs)
    if is_dataclass(outputs):
        found: dict[str, Array] = {}
        for field in fields(outputs):
            value = getattr(outputs, field.name)
            if isinstance(value, Mapping):
                found.update(value)
            elif value is not None:
                found[field.name] = value
        return found
    if hasattr(outputs, "_asdict"):  # a NamedTuple
        return dict(outputs._asdict())
    return {"output": outputs}
