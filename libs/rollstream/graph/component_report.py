"""What a component is made of: its tree with shapes, parameters and, for each part and mode, the milliseconds of building it alone.

Parts are rebuilt from what the shape pass saw go into them, so the report needs spaces only, as the component itself does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rollstream.clock import Clock, SystemClock
from rollstream.errors import ConfigError
from rollstream.graph.declare import SHAPE_PASS_ROWS, Declared, declare
from rollstream.graph.inputs import Argument, Input
from rollstream.graph.memory import Memory
from rollstream.graph.modes.executables import Mode, executable_builder
from rollstream.graph.scope import Call
from rollstream.graph.spaced import Spaces, with_spaces

__all__ = ["ComponentReport", "PartLine", "component_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLine:
    """One API of one part.

    Attributes:
        path: in the tree, dotted; empty for the root.
        component, api: class and method.
        inputs, output: shapes, with `B` for the rows.
        parameters: numbers in the flat vector, parts included.
        declare_ms: of the shape pass, parts included.
        build_ms: by mode, of building this API alone; None where the mode cannot build it alone.
    """

    path: str
    component: str
    api: str
    inputs: str
    output: str
    parameters: int
    declare_ms: float
    build_ms: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentReport:
    """Attributes:
    lines: in tree order: a part before its parts.
    parameters, state: numbers in the flat vectors.
    declare_ms: of the whole shape pass.
    refusals: by `path component.api` and mode, why it cannot be built alone.
    """

    lines: tuple[PartLine, ...]
    parameters: int
    state: int
    declare_ms: float
    refusals: Mapping[str, str] = field(default_factory=dict)


def component_report(
    component: Any,
    spaces: Spaces | None = None,
    *,
    modes: Sequence[Mode] = (),
    rows: int = 256,
    clock: Clock | None = None,
) -> ComponentReport:
    """The tree of `component`, and in each of `modes` the time to build every part alone for `rows` rows.

    Raises:
        ConfigError: the component does not fit its spaces, or a mode is not installed.
    """
    timer = clock or SystemClock()
    builders = {mode: executable_builder(mode) for mode in modes}
    declared = declare(with_spaces(component, spaces), clock=timer)
    lines, refusals = [], {}
    for call in _in_tree_order(declared):
        build_ms: dict[str, float | None] = {}
        for mode, build in builders.items():
            try:
                part = with_spaces(call.part, {call.api: _arguments(call)})
                memory = _memory(part)
                start_s = timer.monotonic_s()
                build(part, api=call.api, rows=rows, memory=memory)
                build_ms[mode] = round(1e3 * (timer.monotonic_s() - start_s), 2)
            except (ConfigError, RuntimeError, TypeError, ValueError, KeyError) as error:
                build_ms[mode] = None
                refusals[f"{call.path or '/'} {call.component}.{call.api} in {mode}"] = str(error).split("\n")[0]
        lines.append(replace(_line(call), build_ms=build_ms))
    return ComponentReport(
        lines=tuple(lines),
        parameters=declared.layout.size,
        state=declared.state_layout.size,
        declare_ms=round(1e3 * declared.duration_s, 2),
        refusals=refusals,
    )


def _in_tree_order(declared: Declared) -> list[Call]:
    """Each API of each part once; a part before its parts, what calls before what is called, siblings in the order of their first call."""
    last = {(call.path, call.component, call.api): call for call in reversed(declared.calls)}
    order: dict[str, int] = {}
    for call in declared.calls:
        parts = call.path.split(".") if call.path else []
        for depth in range(len(parts) + 1):
            order.setdefault(".".join(parts[:depth]), len(order))
    return sorted(last.values(), key=lambda call: _key(call.path, order))


def _key(path: str, order: Mapping[str, int]) -> tuple[int, ...]:
    parts = path.split(".") if path else []
    return tuple(order[".".join(parts[:depth])] for depth in range(len(parts) + 1))


def _memory(part: Any) -> Memory:
    declared = declare(part)
    layout, state = declared.layout, declared.state_layout
    return Memory(layout=layout, flat=layout.init(0), state_layout=state, state=state.init(0))


def _arguments(call: Call) -> Mapping[str, Argument]:
    return {name: _argument(name, value) for name, value in call.inputs.items()}


def _argument(name: str, value: Any) -> Argument:
    if isinstance(value, Mapping):
        return tuple(_input(inner, array) for inner, array in value.items())
    return _input(name, value)


def _input(name: str, value: Any) -> Input:
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise ConfigError(f"argument {name} is no array but {type(value).__name__}, so this part cannot be built alone")
    per_row = bool(value.shape) and value.shape[0] == SHAPE_PASS_ROWS
    shape = tuple(value.shape[1:] if per_row else value.shape)
    return Input(name=name, dtype=np.dtype(value.dtype).str, shape=shape, per_row=per_row)


def _line(call: Call) -> PartLine:
    return PartLine(
        path=call.path,
        component=call.component,
        api=call.api,
        inputs=", ".join(f"{name} {_shapes(value)}" for name, value in call.inputs.items()),
        output=_shapes(call.output),
        parameters=call.parameters,
        declare_ms=round(1e3 * call.duration_s, 3),
    )


def _shapes(value: Any) -> str:
    """`[B, 64]`, or those of a mapping or record by name."""
    if hasattr(value, "shape"):
        numbers = [str(number) for number in value.shape]
        if numbers and value.shape[0] == SHAPE_PASS_ROWS:
            numbers[0] = "B"
        return f"[{', '.join(numbers)}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} {_shapes(array)}" for name, array in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_shapes(array) for array in value)})"
    names = getattr(type(value), "__slots__", None) or getattr(type(value), "__dataclass_fields__", {})
    if names:
        found = {name: getattr(value, name) for name in names if getattr(value, name) is not None}
        return _shapes(found)
    return str(value)
