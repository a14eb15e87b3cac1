"""A small network and its loss, and a count of what JAX compiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("jax")

import jax

from rollstream.graph.initializers import Constant, Orthogonal
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api


@dataclass(frozen=True)
class Line:
    """x . weight + bias + mean of what it has seen."""

    apis: ClassVar[tuple[str, ...]] = ("output", "observe")

    def arguments(self, api: str) -> Arguments:
        x = Input(name="x", shape=(3,))
        return {"x": x} if api == "output" else {"observation": (x,), "weight": Input(name="weight")}

    @api
    def output(self, scope: Scope, *, x: Array) -> Array:
        weight = scope.parameter("weight", (3, 1), Orthogonal())
        bias = scope.parameter("bias", (1,), Constant())
        line = scope.ops.reshape(scope.ops.linear(x, weight, bias), (x.shape[0],))
        return line + scope.state("mean", (2,))[1]

    @api
    def observe(self, scope: Scope, *, observation: Mapping[str, Array], weight: Array) -> Array:
        mean = scope.state("mean", (2,))
        scope.set_state("mean", mean * 0.5 + scope.ops.mean(observation["x"] * weight[:, None]))
        return mean


@dataclass(frozen=True)
class LineLoss:
    """Squared error against `y`, and against half of what the target network says."""

    policy: Line = Line()

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("error_abs",)

    def arguments(self, api: str) -> Arguments:
        scale = Input(name="scale", role="scalar", per_row=False)
        return {"x": Input(name="x", shape=(3,)), "y": Input(name="y"), "weight": Input(name="weight"), "scale": scale}

    @api
    def loss(self, scope: Scope, *, x: Array, y: Array, weight: Array, scale: Array) -> LossResult:
        ops = scope.ops
        error = (self.policy.output(scope, x=x) - y - 0.5 * self.policy.output(scope.target(), x=x)) * scale
        still = ops.stop_gradient(error)
        size = ops.sum(ops.abs(still) * weight) / ops.sum(weight)
        return LossResult(loss=ops.sum(error * error * weight), metrics=ops.stack([size]), rows={"error": still})


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def line_loss() -> LineLoss:
    return LineLoss()


@pytest.fixture
def line_columns(generator: np.random.Generator) -> Callable[[int], dict[str, np.ndarray]]:
    """Makes that many rows for `LineLoss`."""

    def make(rows: int) -> dict[str, np.ndarray]:
        x = generator.standard_normal((rows, 3)).astype(np.float32)
        return {"x": x, "y": generator.standard_normal(rows).astype(np.float32), "weight": np.ones(rows, np.float32)}

    return make


@pytest.fixture
def compilations() -> Iterator[list[str]]:
    """What JAX compiles or reads from its cache while the test runs."""
    seen: list[str] = []

    def count(event: str, duration_s: float, **_: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(count)
    yield seen
    jax.monitoring.unregister_event_duration_listener(count)
