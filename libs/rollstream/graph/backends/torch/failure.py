"""Why a component cannot be traced or compiled: its path, the operator, and what to use instead."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from rollstream.errors import ConfigError
from rollstream.graph.scope import Scope

__all__ = ["cannot_build", "require_compiler"]

OPERATOR = re.compile(r"(?:aten|prims|prim|torchvision)[.:]+\w+(?:\.\w+)?")
MAX_CHARACTERS = 300


def cannot_build(mode: str, error: Exception) -> ConfigError:
    """What to raise from `error`, which tracing or compiling raised."""
    text = f"{type(error).__name__}: {(str(error).strip() or repr(error)).splitlines()[0][:MAX_CHARACTERS]}"
    found = OPERATOR.search(str(error))
    operator = f"operator {found.group()}: " if found and found.group() not in text else ""
    return ConfigError(f"mode {mode!r} could not be built: {_place(error)}{operator}{text}; use mode 'torch'")


def require_compiler(mode: str) -> None:
    """Raise `ConfigError` that says what to install when there is no C++ compiler."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler as error:
        raise ConfigError(f"mode {mode!r} needs a C++ compiler, and none was found; install g++ or use mode 'torch'") from error


def _place(error: Exception) -> str:
    """Path, component, API and line of the innermost component at work when `error` was raised; empty if there was none."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        scope, component = frame.f_locals.get("scope"), frame.f_locals.get("self")
        if isinstance(scope, Scope) and component is not None:
            code = frame.f_code
            name = f"{type(component).__name__}.{code.co_name}"
            place = f"{scope.path or '(root)'}: {name} ({Path(code.co_filename).name}, line {line}): "
    return place
