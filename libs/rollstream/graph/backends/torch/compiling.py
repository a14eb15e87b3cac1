"""Tracing a function of tensors once, and compiling what was traced: by Inductor alone, or by `torch.compile`.

    torch-graph:    make_fx -> Inductor -> a function without guards. Shapes come from spaces, so there is nothing to check at a call.
    torch-compile:  make_fx -> torch.compile -> a function with guards, and everything that `torch.compile` can do (CUDA graphs).

Both start from the traced program, which is one code object of its own: user code is never seen by Dynamo, whose limit of recompiles
counts per code object and is met by frameworks that send everything through one closure.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from rollstream.clock import Clock
from rollstream.graph.backends.torch.failure import cannot_build, require_compiler
from rollstream.graph.report import Compiled

__all__ = ["CompiledProgram", "StaticMode", "traced"]

StaticMode = Literal["torch-graph", "torch-compile"]
Function = Callable[..., Sequence[Tensor]]


def traced(function: Function, examples: Sequence[Tensor]) -> torch.fx.GraphModule:
    """The operations of `function` on tensors like `examples`, which it may change."""
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(function)(*examples)


class CompiledProgram:
    """`function` on tensors like `examples`, compiled when it is made.

    Attributes:
        report: what that took.
        compiles: how often it was compiled; more than 1 would be a recompile.
    """

    def __init__(self, function: Function, examples: Sequence[Tensor], *, mode: StaticMode, clock: Clock) -> None:
        require_compiler(mode)
        self.compiles = 0
        start_s = clock.monotonic_s()
        try:
            graph = traced(function, examples)
            traced_s = clock.monotonic_s()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Inductor about itself
                self._run: Any = (
                    self._inductor(graph, list(examples))
                    if mode == "torch-graph"
                    else torch.compile(graph, fullgraph=True, dynamic=False, backend=self._inductor)
                )
                self._run(*examples)  # what is compiled lazily is compiled now
        except Exception as error:
            raise cannot_build(mode, error) from error
        self.report = Compiled(nodes=len(graph.graph.nodes), trace_s=traced_s - start_s, compile_s=clock.monotonic_s() - traced_s)

    def __call__(self, *arguments: Tensor) -> Sequence[Tensor]:
        found: Sequence[Tensor] = self._run(*arguments)
        return found

    def _inductor(self, graph: torch.fx.GraphModule, examples: list[Tensor]) -> Any:
        from torch._inductor.compile_fx import compile_fx

        self.compiles += 1
        return compile_fx(graph, examples)
