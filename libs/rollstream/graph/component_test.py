"""Test any component from its spaces alone: every mode against the NumPy reference, gradients against finite differences.

component_test(PpoLoss(policy))                                            # it knows what it is fed
component_test(Dense(features=3), {"output": {"x": Box(-1, 1, (8,))}})     # a part does not
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from rollstream.graph.backends.numpy_api_gradient import api_gradient
from rollstream.graph.backends.numpy_held import HeldOps
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.declare import Component, declare
from rollstream.graph.executable import output_columns
from rollstream.graph.inputs import sample
from rollstream.graph.layout import FlatLayout
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.memory import Memory
from rollstream.graph.modes.executables import Mode, executable_builder
from rollstream.graph.ops import Ops
from rollstream.graph.reference import reference
from rollstream.graph.spaced import Spaces, with_spaces
from rollstream.seeding import child_generator

__all__ = ["QUICK_MODES", "Comparison", "component_test", "installed_modes"]

QUICK_MODES: tuple[Mode, ...] = tuple(mode for mode in get_args(Mode) if mode not in ("torch-graph", "torch-compile"))

STEP = 1e-6
"""Of the finite differences, taken in float64."""
RUNS = 2
"""Of every executable, with other inputs each time."""
DIRECTIONS = 8
"""Random directions in which slopes are compared."""
HUGE = 1e6
"""Outputs beyond it (log-probabilities of masked actions) have no slope that finite differences could show."""


def installed_modes() -> tuple[Mode, ...]:
    """Those of `QUICK_MODES` whose libraries are installed here."""
    missing = {
        mode
        for mode, needs in (("torch", ("torch",)), ("onnx", ("onnx", "onnxruntime")), ("jax", ("jax",)))
        if any(importlib.util.find_spec(name) is None for name in needs)
    }
    return tuple(mode for mode in QUICK_MODES if mode not in missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Largest difference of one API in one mode (or of its gradient) from the reference."""

    api: str
    mode: str
    difference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    component: Component
    api: str
    memory: Memory
    inputs: Mapping[str, npt.NDArray[Any]]


def component_test(
    component: Any,
    spaces: Spaces | None = None,
    *,
    modes: Sequence[Mode] | None = None,
    rows: int = 5,
    seed: int = 0,
    tolerance: float = 1e-5,
    slope_tolerance: float = 1e-4,
) -> tuple[Comparison, ...]:
    """Run every API of `component` on random inputs, parameters and state in all `modes`.

    Compared with plain NumPy are values, shapes and dtypes of all outputs, and the state afterwards; twice, so that the second
    run starts from the first one's state and must not see anything else of it. Slopes by autograd are compared with finite
    differences in float64, where outputs are of finite size (log-probabilities of masked actions are not).

    Args:
        spaces: what the APIs are fed, for a part that does not know it itself.
        modes: None: those that build in well under a second and are installed here; the result names them. With
            `modes=MODES` also `torch-graph` and `torch-compile`, which take seconds for each API.
        tolerance: largest difference between modes, relative to 1 + the size of the reference.
        slope_tolerance: the same for slopes by autograd against slopes by finite differences.

    Raises:
        AssertionError: names the API, the mode, the output, and the difference.
        ConfigError: a mode cannot build the component, or is not installed.
    """
    component = with_spaces(component, spaces)
    builders = {mode: executable_builder(mode) for mode in (installed_modes() if modes is None else modes)}
    declared = declare(component)
    layout = declared.layout
    generator = child_generator(seed, "component_test")
    memory = Memory(
        layout=layout,
        flat=_random_parameters(layout, seed, generator),
        target=_random_parameters(layout, seed + 1, generator),
        state_layout=declared.state_layout,
        state=declared.state_layout.init(seed),
    )
    found: list[Comparison] = []
    for api in component.apis:
        drawn = [sample(component.arguments(api), rows=rows, generator=generator) for _ in range(RUNS)]
        case = _Case(component=component, api=api, memory=memory, inputs=drawn[0])
        expected = list(_expected(case, drawn))
        for mode, build in builders.items():
            own = replace(memory, state=memory.state.copy())
            executable = build(component, api=api, rows=rows, memory=own)
            worst = 0.0
            for inputs, (outputs, state) in zip(drawn, expected, strict=True):
                for name, buffer in executable.inputs.items():
                    buffer[...] = inputs[name]
                columns = dict(executable.run())
                where = f"{_name(component)}.{api} in mode {mode}"
                assert columns.keys() == outputs.keys(), f"{where}: gives {sorted(columns)}, the reference {sorted(outputs)}"
                for name, value in outputs.items():
                    worst = max(worst, _difference(f"{where}, output {name}", columns[name], value, tolerance=tolerance))
                for name, value in state.items():
                    view = own.state_views[name]
                    worst = max(worst, _difference(f"{where}, state {name}", view, value, tolerance=tolerance))
            found.append(Comparison(api=api, mode=mode, difference=worst))
        if layout.size:
            found.append(_compare_slopes(case, generator, slope_tolerance))
    return tuple(found)


def _expected(
    case: _Case, drawn: Sequence[Mapping[str, npt.NDArray[Any]]]
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Outputs and state of the reference after each run."""
    memory = replace(case.memory, state=case.memory.state.copy())
    for inputs in drawn:
        written: dict[str, Any] = {}
        step = replace(case, memory=memory, inputs=inputs)
        outputs = {name: np.array(value) for name, value in output_columns(_reference(step, None, np.float32, written)).items()}
        for name, value in written.items():
            memory.state_views[name][...] = value
        yield outputs, {name: view.copy() for name, view in memory.state_views.items()}


def _name(component: Any) -> str:
    return type(getattr(component, "part", component)).__name__


def _random_parameters(layout: FlatLayout, seed: int, generator: np.random.Generator) -> npt.NDArray[np.float32]:
    """As initialized, plus noise, so that biases are not 0 and heads not tiny."""
    return layout.init(seed) + generator.normal(0.0, 0.1, layout.size).astype(np.float32)


def _reference(
    case: _Case,
    flat: npt.NDArray[Any] | None,
    dtype: type[np.floating[Any]],
    written: dict[str, Any] | None = None,
    ops: Ops | None = None,
) -> Any:
    return reference(
        case.component,
        api=case.api,
        memory=case.memory,
        inputs=case.inputs,
        moved=flat,
        written=written,
        dtype=dtype,
        ops=ops,
    )


def _difference(where: str, found: npt.NDArray[Any], expected: npt.NDArray[Any], *, tolerance: float) -> float:
    output, wanted = np.asarray(found), np.asarray(expected)
    assert output.dtype == wanted.dtype, f"{where}: dtype {output.dtype}, the reference has {wanted.dtype}"
    assert output.shape == wanted.shape, f"{where}: shape {output.shape}, the reference has {wanted.shape}"
    assert np.array_equal(np.isfinite(output), np.isfinite(wanted)), (
        f"{where}: not finite where the reference is, or the other way"
    )
    if not np.isfinite(wanted).all():
        output, wanted = np.nan_to_num(output), np.nan_to_num(wanted)
    difference = float(np.max(np.abs(output.astype(np.float64) - wanted), initial=0.0))
    limit = tolerance * (1.0 + float(np.max(np.abs(wanted), initial=0.0)))
    assert difference <= limit, f"{where}: differs by {difference:.2e} from the reference, allowed {limit:.2e}"
    return difference


def _compare_slopes(case: _Case, generator: np.random.Generator, tolerance: float) -> Comparison:
    result = _reference(case, None, np.float32)
    outputs = {"loss": result.loss} if isinstance(result, LossResult) else output_columns(result)
    cotangents = {
        name: np.asarray(generator.uniform(0.5, 1.5, np.shape(value)) * (np.abs(value) < HUGE), np.float32)
        for name, value in outputs.items()
        if np.asarray(value).dtype.kind == "f"
    }
    if not cotangents:
        return Comparison(api=case.api, mode="gradient", difference=0.0)
    by_tape = api_gradient(case.component, api=case.api, memory=case.memory, inputs=case.inputs, cotangents=cotangents)
    by_autograd, worst = by_tape, 0.0
    if "torch" in installed_modes():
        from rollstream.graph.backends.torch.gradient import gradient

        by_autograd = gradient(case.component, api=case.api, memory=case.memory, inputs=case.inputs, cotangents=cotangents)
        where = f"{_name(case.component)}.{case.api}, gradient in mode numpy"
        worst = _difference(where, by_tape, by_autograd, tolerance=tolerance)
    for _ in range(DIRECTIONS):
        direction = generator.standard_normal(case.memory.layout.size)
        direction /= np.linalg.norm(direction)
        slope = _slope(case, direction, cotangents, ops=HeldOps if isinstance(result, LossResult) else NumpyOps)
        difference = abs(float(by_autograd.astype(np.float64) @ direction) - slope) / (1.0 + abs(slope))
        where = f"{_name(case.component)}.{case.api}"
        assert difference <= tolerance, (
            f"{where}: autograd's slope differs by {difference:.2e} from finite differences ({slope:.4g})"
        )
        worst = max(worst, difference)
    return Comparison(api=case.api, mode="gradient", difference=worst)


def _slope(
    case: _Case,
    direction: npt.NDArray[np.float64],
    cotangents: Mapping[str, npt.NDArray[np.float32]],
    *,
    ops: type[HeldOps | NumpyOps],
) -> float:
    """Central difference along `direction`, in float64. A loss may stop gradients on purpose; in another component it is a mistake."""
    table, flat = ops(dtype=np.float64), case.memory.flat.astype(np.float64)
    if isinstance(table, HeldOps):
        _reference(case, flat, np.float64, ops=table)
    ends = []
    for sign in (1.0, -1.0):
        if isinstance(table, HeldOps):
            table.again()
        ends.append(output_columns(_reference(case, flat + sign * STEP * direction, np.float64, ops=table)))
    above, below = ends
    return sum(float(np.sum((above[name] - below[name]) * value)) for name, value in cotangents.items()) / (2.0 * STEP)
