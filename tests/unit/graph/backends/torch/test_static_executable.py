"""APIs as static programs: they agree with NumPy, write state where it lies, never compile twice, and say why they cannot be built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.errors import ConfigError
from rollstream.graph import build
from rollstream.graph.component_test import component_test
from rollstream.graph.initializers import Constant
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


@dataclass(frozen=True)
class Mean:
    """Remembers the mean of what it saw, and how often it was asked."""

    apis: ClassVar[tuple[str, ...]] = ("output", "observe")

    def arguments(self, api: str) -> Arguments:
        return {"x": Input(name="x", shape=(2,))}

    @api
    def output(self, scope: Scope, *, x: Array) -> dict[str, Array]:
        """[B, 2] -> x times scale, minus the mean."""
        scale = scope.parameter("scale", (2,), Constant(value=2.0))
        return {"y": x * scale - scope.state("mean", (2,)), "was": scope.state("mean", (2,))}

    @api
    def observe(self, scope: Scope, *, x: Array) -> dict[str, Array]:
        """[B, 2] -> the mean before."""
        before = scope.state("mean", (2,))
        scope.set_state("mean", scope.ops.mean(x, axis=0))
        return {"was": before}


@dataclass(frozen=True)
class Curious:
    """Looks at a number in order to decide what to do."""

    apis: ClassVar[tuple[str, ...]] = ("output",)

    def arguments(self, api: str) -> Arguments:
        return {"x": Input(name="x", shape=(2,))}

    @api
    def output(self, scope: Scope, *, x: Array) -> Array:
        return self.inner(scope.child("inner"), x)

    @api
    def inner(self, scope: Scope, x: Array) -> Array:
        return x if float(scope.ops.sum(x)) > 0.0 else -x


@pytest.mark.parametrize("mode", ["torch-graph", "torch-compile"])
def test_parameters_and_state_are_read_and_written_where_they_lie(mode: Any) -> None:
    built = build(Mean(), mode=mode, rows=2)
    np.testing.assert_allclose(built("output", x=X)["y"], 2.0 * X)
    built.memory.live_views["scale"][:] = 3.0
    np.testing.assert_allclose(built("observe", x=X)["was"], [0.0, 0.0])
    np.testing.assert_allclose(built.memory.state_views["mean"], [2.0, 1.0])
    found = built("output", x=X)
    np.testing.assert_allclose(found["y"], 3.0 * X - [2.0, 1.0])
    np.testing.assert_allclose(built("observe", x=2 * X)["was"], [2.0, 1.0])
    assert [executable.recompiles for executable in built.executables.values()] == [0, 0]  # type: ignore[attr-defined]


def test_more_components_than_the_limit_of_recompiles_each_compile_once() -> None:
    import torch

    limit = torch._dynamo.config.recompile_limit
    built = [build(Mean(), mode="torch-compile", rows=rows, apis=("output",)) for rows in range(1, limit + 3)]
    for rows, each in enumerate(built, start=1):
        assert each("output", x=np.ones((rows, 2), np.float32))["y"].shape == (rows, 2)
    assert all(each.executables["output"].recompiles == 0 for each in built)  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", ["torch-graph", "torch-compile"])
def test_control_flow_that_depends_on_data_is_named_with_its_place_and_what_to_use_instead(mode: Any) -> None:
    np.testing.assert_allclose(build(Curious(), mode="torch", rows=2)("output", x=X)["output"], X)
    place = rf"mode '{mode}' could not be built: inner: Curious.inner \(test_static_executable.py, line \d+\): "
    with pytest.raises(ConfigError, match=place) as raised:
        build(Curious(), mode=mode, rows=2)
    assert "aten._local_scalar_dense" in str(raised.value)
    assert str(raised.value).endswith("; use mode 'torch'")


def test_component_test_runs_the_static_modes_too() -> None:
    compared = component_test(Mean(), modes=["torch-graph"])
    assert ("output", "torch-graph") in {(item.api, item.mode) for item in compared}
