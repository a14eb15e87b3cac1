"""One Python function as one XLA executable for fixed shapes: traced once, compiled once, called for ever.

64-bit types are allowed while it is traced and called, in this thread only: integers are NumPy's int64 and the outputs have the
declared dtypes, yet nothing changes for other JAX code of the process. Floating-point numbers are float32, because that is what
goes in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock
from rollstream.errors import ConfigError
from rollstream.graph.backends.jax.process import cache_hits, prepare
from rollstream.graph.layout import FlatLayout
from rollstream.graph.report import Compiled
from rollstream.graph.scope import Scope

__all__ = ["Program", "aligned_zeros", "compile_program", "split"]

ALIGNMENT_BYTES = 64
"""XLA reads NumPy memory in place when it begins at a multiple of this, and copies it first otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A compiled function.

    Attributes:
        report: what it took.
    """

    report: Compiled
    executable: Any

    def __call__(self, *arguments: npt.NDArray[Any]) -> Any:
        """Call it with arrays of exactly the shapes and dtypes it was made for. Never compiles."""
        with jax.enable_x64(True):
            return self.executable(*arguments)


def compile_program(function: Callable[..., Any], examples: Sequence[npt.NDArray[Any]], *, what: str, clock: Clock) -> Program:
    """Make `function` a program for arguments like `examples`.

    Args:
        what: is built, for messages: `CategoricalPolicy.act`.

    Raises:
        ConfigError: it does something that JAX cannot trace or compile; names the component's path, and what to do instead.
    """
    prepare()
    start_s, hits = clock.monotonic_s(), cache_hits()
    with jax.enable_x64(True):
        try:
            traced = jax.jit(function).trace(*examples)
            traced_s = clock.monotonic_s()
            executable = traced.lower().compile()
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(_refusal(error, what)) from error
    report = Compiled(
        nodes=len(traced.jaxpr.eqns),
        trace_s=traced_s - start_s,
        compile_s=clock.monotonic_s() - traced_s,
        cached=cache_hits() > hits,
    )
    return Program(report=report, executable=executable)


def split(layout: FlatLayout, flat: Any) -> dict[str, Any]:
    """Parameters by name, of a traced flat vector."""
    return {
        parameter.name: flat[offset : offset + parameter.size].reshape(parameter.shape)
        for parameter, offset in zip(layout.parameters, layout.offsets, strict=True)
    }


def aligned_zeros(shape: tuple[int, ...], dtype: str | np.dtype[Any]) -> npt.NDArray[Any]:
    """A buffer that XLA reads in place."""
    wanted = np.dtype(dtype)
    size = wanted.itemsize * int(np.prod(shape, dtype=np.int64))
    memory = np.zeros(size + ALIGNMENT_BYTES, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT_BYTES
    return memory[begin : begin + size].view(wanted).reshape(shape)


_CHOICES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
"""What JAX raises when Python asks for the numbers in an array that has none while it is traced."""


def _refusal(error: Exception, what: str) -> str:
    place = _place(error.__traceback__) or what
    if isinstance(error, _CHOICES):
        return (
            f"{place}: mode 'jax' cannot trace Python that looks at numbers of an array (if, while, int(), NumPy functions); "
            "use ops.where for choices and ops.scan for loops, or mode 'torch'"
        )
    reason = (str(error).strip() or repr(error)).splitlines()[0][:300]
    return f"{place}: mode 'jax' could not be built: {type(error).__name__}: {reason}; use mode 'torch'"


def _place(trace: TracebackType | None) -> str:
    """Path and API of the innermost component in which the error arose."""
    found = ""
    while trace is not None:
        local = trace.tb_frame.f_locals
        scope, component = local.get("scope"), local.get("self")
        if isinstance(scope, Scope) and component is not None:
            name = trace.tb_frame.f_code.co_name
            found = f"{scope.path or '(root)'}: {type(component).__name__}.{name}"
        trace = trace.tb_next
    return found
