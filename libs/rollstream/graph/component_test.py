"""Test any component from its spaces alone: every mode against the NumPy reference, gradients against finite differences.

component_test(PpoLoss(policy))      # raises AssertionError naming the API, the mode and the output that differ
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.declare import Component, declare
from rollstream.graph.executable import NumpyExecutable, output_columns
from rollstream.graph.inputs import sample
from rollstream.graph.layout import FlatLayout
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.memory import Memory
from rollstream.graph.reference import reference
from rollstream.seeding import child_generator

__all__ = ["Comparison", "component_test"]

STEP = 1e-6
"""Of the finite differences, taken in float64."""
DIRECTIONS = 8
"""Random directions in which slopes are compared."""


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
    component: Component, *, rows: int = 5, seed: int = 0, tolerance: float = 1e-5, slope_tolerance: float = 1e-4
) -> tuple[Comparison, ...]:
    """Run every API of `component` on random inputs and parameters in the modes `numpy` (taped) and `torch`.

    Args:
        tolerance: largest difference between modes, relative to 1 + the size of the reference.
        slope_tolerance: the same for slopes by autograd against slopes by finite differences.

    Raises:
        AssertionError: names the API, the mode, the output, and the difference.
    """
    from rollstream.graph.backends.torch.executable import TorchExecutable

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
        inputs = sample(component.arguments(api), rows=rows, generator=generator)
        case = _Case(component=component, api=api, memory=memory, inputs=inputs)
        expected = output_columns(_reference(case, memory.flat, np.float32))
        for mode, build in (("numpy", NumpyExecutable), ("torch", TorchExecutable)):
            executable = build(component, api=api, rows=rows, memory=replace(memory, state=memory.state.copy()))
            for name, buffer in executable.inputs.items():
                buffer[...] = inputs[name]
            outputs = executable.run()
            difference = max(
                _difference(case, mode, name, outputs, value, tolerance=tolerance) for name, value in expected.items()
            )
            found.append(Comparison(api=api, mode=mode, difference=difference))
        if layout.size:
            found.append(_compare_slopes(case, generator, slope_tolerance))
    return tuple(found)


def _random_parameters(layout: FlatLayout, seed: int, generator: np.random.Generator) -> npt.NDArray[np.float32]:
    """As initialized, plus noise, so that biases are not 0 and heads not tiny."""
    return layout.init(seed) + generator.normal(0.0, 0.1, layout.size).astype(np.float32)


def _reference(case: _Case, flat: npt.NDArray[Any], dtype: type[np.floating[Any]]) -> Any:
    return reference(
        case.component,
        api=case.api,
        memory=case.memory,
        inputs=case.inputs,
        moved=flat,
        dtype=dtype,
    )


def _difference(
    case: _Case, mode: str, name: str, outputs: Mapping[str, npt.NDArray[Any]], expected: npt.NDArray[Any], *, tolerance: float
) -> float:
    where = f"{type(case.component).__name__}.{case.api} in mode {mode}, output {name}"
    output, wanted = np.asarray(outputs[name]), np.asarray(expected)
    assert output.shape == wanted.shape, f"{where}: shape {output.shape}, the reference has {wanted.shape}"
    difference = float(np.max(np.abs(output.astype(np.float64) - wanted), initial=0.0))
    limit = tolerance * (1.0 + float(np.max(np.abs(wanted), initial=0.0)))
    assert difference <= limit, f"{where}: differs by {difference:.2e} from the reference, allowed {limit:.2e}"
    return difference


def _compare_slopes(case: _Case, generator: np.random.Generator, tolerance: float) -> Comparison:
    from rollstream.graph.backends.torch.gradient import gradient

    result = _reference(case, case.memory.flat, np.float32)
    outputs = {"loss": result.loss} if isinstance(result, LossResult) else output_columns(result)
    cotangents = {
        name: np.asarray(generator.uniform(0.5, 1.5, np.shape(value)), np.float32)
        for name, value in outputs.items()
        if np.asarray(value).dtype.kind == "f"
    }
    if not cotangents:
        return Comparison(api=case.api, mode="gradient", difference=0.0)
    by_autograd = gradient(
        case.component,
        api=case.api,
        memory=case.memory,
        inputs=case.inputs,
        cotangents=cotangents,
    )
    worst = 0.0
    for _ in range(DIRECTIONS):
        direction = generator.standard_normal(case.memory.layout.size)
        direction /= np.linalg.norm(direction)
        slope = _slope(case, direction, cotangents)
        difference = abs(float(by_autograd.astype(np.float64) @ direction) - slope) / (1.0 + abs(slope))
        where = f"{type(case.component).__name__}.{case.api}"
        assert difference <= tolerance, (
            f"{where}: autograd's slope differs by {difference:.2e} from finite differences ({slope:.4g})"
        )
        worst = max(worst, difference)
    return Comparison(api=case.api, mode="gradient", difference=worst)


def _slope(case: _Case, direction: npt.NDArray[np.float64], cotangents: Mapping[str, npt.NDArray[np.float32]]) -> float:
    """Central difference along `direction`, in float64."""
    ends = []
    for sign in (1.0, -1.0):
        outputs = output_columns(_reference(case, case.memory.flat.astype(np.float64) + sign * STEP * direction, np.float64))
        ends.append(sum(float(np.sum(np.asarray(outputs[name]) * value)) for name, value in cotangents.items()))
    return (ends[0] - ends[1]) / (2.0 * STEP)
