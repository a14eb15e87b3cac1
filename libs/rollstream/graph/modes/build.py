"""One function from component and spaces to something that runs, in any mode: a callable for each API, and a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, SystemClock
from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.graph.declare import declare
from rollstream.graph.executable import Executable
from rollstream.graph.inputs import fill
from rollstream.graph.memory import Memory
from rollstream.graph.modes.executables import Mode, executable_builder
from rollstream.graph.report import BuildReport, Compiled
from rollstream.graph.spaced import Spaces, with_spaces

__all__ = ["Built", "build"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A component that runs.

    Attributes:
        memory: its parameters and state, float32; changing them there is enough.
        report: what was built, and how long it took.
    """

    memory: Memory
    report: BuildReport
    executables: Mapping[str, Executable]

    def __call__(self, api: str, **inputs: npt.NDArray[Any] | float) -> dict[str, npt.NDArray[Any]]:
        """Run an API with inputs by name (columns of a mapping by their own names); outputs by name, the caller's to keep."""
        found = self.executables.get(api)
        if found is None:
            raise ConfigError(f"there is no API {api!r}; built were {', '.join(self.executables)}")
        if inputs.keys() != found.inputs.keys():
            raise SchemaMismatch(f"{api} takes {', '.join(found.inputs)}; got {', '.join(inputs) or 'nothing'}")
        for name, value in inputs.items():
            fill(found.inputs[name], np.asarray(value), name=name, where=api)
        return {name: column.copy() for name, column in found.run().items()}


def build(
    component: Any,
    spaces: Spaces | None = None,
    *,
    mode: Mode = "numpy",
    device: str = "cpu",
    rows: int = 1,
    apis: Sequence[str] | None = None,
    seed: int = 0,
    memory: Memory | None = None,
    clock: Clock | None = None,
) -> Built:
    """Build `component` for `rows` rows.

    Args:
        spaces: what its APIs are fed; needed for parts that do not know it themselves (a dense layer).
        apis: those to build; None: all.
        seed: of the first parameters.
        memory: parameters and state to use in their place.

    Raises:
        ConfigError: with the component's path, the API and what does not fit, or what the mode cannot do.
    """
    if rows < 1:
        raise ConfigError(f"rows must be >= 1, got {rows}")
    timer = clock or SystemClock()
    make = executable_builder(mode, device=device)
    fed = with_spaces(component, spaces)
    declared = declare(fed, clock=timer)
    if memory is None:
        memory = Memory(
            layout=declared.layout,
            flat=declared.layout.init(seed),
            state_layout=declared.state_layout,
            state=declared.state_layout.init(seed),
        )
    start_s = timer.monotonic_s()
    made = {api: make(fed, api=api, rows=rows, memory=memory) for api in (fed.apis if apis is None else apis)}
    compiled = _compiled(made, total_s=timer.monotonic_s() - start_s)
    return Built(memory=memory, report=BuildReport.of(declared, mode=mode).compiled(compiled), executables=made)


def _compiled(made: Mapping[str, Executable], *, total_s: float) -> Compiled:
    """What all executables took together; what they do not tell themselves counts as compiling."""
    told = [report for executable in made.values() if isinstance(report := getattr(executable, "report", None), Compiled)]
    trace_s = sum(report.trace_s for report in told)
    return Compiled(
        nodes=sum(report.nodes for report in told),
        trace_s=trace_s,
        compile_s=total_s - trace_s,
        cached=bool(told) and all(report.cached for report in told),
    )
