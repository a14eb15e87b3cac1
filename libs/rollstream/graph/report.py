"""What was built: one line per component and API, and what the mode did with the whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rollstream.graph.declare import Declared
from rollstream.graph.scope import Call

__all__ = ["BuildReport", "Compiled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """How a static mode was made: operations in the traced graph, seconds to trace and to compile.

    Attributes:
        cached: it was not compiled but read from the cache of an earlier run.
    """

    nodes: int
    trace_s: float
    compile_s: float
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """Attributes:
    mode: how the component runs.
    calls: every API call of the shape pass, innermost first.
    parameters: numbers in the flat vector.
    declare_s: seconds of the shape pass.
    graph: of a static mode.
    remarks: what the mode decided by itself, and why.
    """

    mode: str
    calls: tuple[Call, ...]
    parameters: int
    declare_s: float
    graph: Compiled | None = None
    remarks: tuple[str, ...] = ()

    @staticmethod
    def of(declared: Declared, *, mode: str) -> BuildReport:
        return BuildReport(mode=mode, calls=declared.calls, parameters=declared.layout.size, declare_s=declared.duration_s)

    def compiled(self, graph: Compiled) -> BuildReport:
        """The same with what the static mode took."""
        return replace(self, graph=graph)

    def text(self) -> str:
        """A table for people."""
        lines = [f"{'path':<24} {'component.api':<28} {'parameters':>10} {'declare ms':>10}"]
        lines += [
            f"{call.path or '/':<24} {call.component + '.' + call.api:<28} {call.parameters:>10} {call.duration_s * 1e3:>10.2f}"
            for call in self.calls
        ]
        lines.append(f"mode {self.mode}: {self.parameters} parameters, shape pass {self.declare_s * 1e3:.1f} ms")
        if self.graph is not None:
            graph = self.graph
            found = ", from the cache" if graph.cached else ""
            lines.append(f"graph: {graph.nodes} operations, trace {graph.trace_s:.1f} s, compile {graph.compile_s:.1f} s{found}")
        return "\n".join([*lines, *self.remarks])
