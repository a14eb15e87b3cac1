"""APIs compiled by XLA: parameters and state are read and written where they lie, and nothing compiles twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("jax")

import jax

from rollstream.errors import ConfigError
from rollstream.graph import build
from rollstream.graph.backends.jax.executable import JaxExecutable
from rollstream.graph.component_test import component_test
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.memory import Memory
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

X = np.array([[1, 2, 3], [0, 1, 0]], np.float32)


def test_it_agrees_with_numpy(line_loss: Any) -> None:
    compared = component_test(line_loss, modes=["jax"])
    assert [(item.api, item.mode) for item in compared] == [("loss", "jax"), ("loss", "gradient")]


def test_new_parameters_are_seen_without_compiling_again(line: Any, compilations: list[str]) -> None:
    built = build(line, mode="jax", rows=2)
    made = len(compilations)
    assert made >= 2
    for weight in (1.0, 2.0):
        built.memory.live_views["weight"][:] = weight
        built.memory.live_views["bias"][:] = -weight
        assert built("output", x=X)["output"].tolist() == [5 * weight, 0.0]
    assert len(compilations) == made


def test_the_report_adds_up_what_tracing_and_compiling_took(line: Any) -> None:
    built = build(line, mode="jax", rows=2)
    reports = [executable.report for executable in built.executables.values()]  # type: ignore[attr-defined]
    graph = built.report.graph
    assert graph is not None
    assert graph.nodes == sum(report.nodes for report in reports) > 5
    assert graph.trace_s == sum(report.trace_s for report in reports) > 0
    assert graph.compile_s >= sum(report.compile_s for report in reports) > 0


def test_state_is_read_and_written_where_it_lies(line: Any) -> None:
    built = build(line, mode="jax", rows=2)
    built.memory.state[:] = [4.0, 8.0]
    before = built("observe", x=X, weight=np.ones(2, np.float32))["output"]
    assert before.tolist() == [4.0, 8.0]
    np.testing.assert_allclose(built.memory.state, [2.0 + 7 / 6, 4.0 + 7 / 6], rtol=1e-6)
    moved = built("observe", x=X, weight=np.zeros(2, np.float32))["output"]
    np.testing.assert_allclose(moved, [2.0 + 7 / 6, 4.0 + 7 / 6], rtol=1e-6)


def test_without_a_target_network_the_parameters_are_their_own(line_loss: Any) -> None:
    built = build(line_loss, mode="jax", rows=2)
    built.memory.flat[:] = 2.0  # x . w + b = 14, 4; half of it is left
    outputs = built("loss", x=X, y=np.zeros(2, np.float32), weight=np.ones(2, np.float32), scale=1.0)
    assert outputs["error"].tolist() == [7.0, 2.0]
    assert outputs["loss"].tolist() == 53.0


def test_a_target_network_is_read_from_its_own_memory(line_loss: Any) -> None:
    layout = build(line_loss.policy, rows=2).memory.layout
    target = np.zeros(layout.size, np.float32)
    state = build(line_loss.policy, rows=2).memory
    memory = Memory(
        layout=layout,
        flat=np.ones(layout.size, np.float32),
        target=target,
        state_layout=state.state_layout,
        state=state.state,
    )
    executable = JaxExecutable(line_loss, api="loss", rows=2, memory=memory)
    executable.inputs["x"][:], executable.inputs["scale"][...] = X, 1.0
    assert executable.run()["error"].tolist() == [7.0, 2.0]
    target[:] = 2.0
    assert executable.run()["error"].tolist() == [0.0, 0.0]


@dataclass(frozen=True)
class Whole:
    """Integers too large for 32 bits, and an API that gives nothing but constants."""

    apis: ClassVar[tuple[str, ...]] = ("more", "fixed")

    def arguments(self, api: str) -> Arguments:
        return {"x": Input(name="x", dtype="<i8", low=0, high=2**60)}

    @api
    def more(self, scope: Scope, *, x: Array) -> dict[str, Array]:
        return {"next": x + 1, "is_odd": x % 2 == 1}

    @api
    def fixed(self, scope: Scope, *, x: Array) -> dict[str, Array]:
        return {"three": scope.ops.constant(np.array([3]))}


def test_integers_keep_their_64_bits_and_other_code_its_32() -> None:
    built = build(Whole(), mode="jax", rows=2)
    outputs = built("more", x=np.array([2**53, 2**53 + 1]))
    assert outputs["next"].tolist() == [2**53 + 1, 2**53 + 2]
    assert outputs["next"].dtype == np.int64
    assert outputs["is_odd"].tolist() == [False, True]
    assert built("fixed", x=np.zeros(2, np.int64))["three"].dtype == np.int64
    assert jax.numpy.arange(2).dtype == np.int32
    component_test(Whole(), modes=["jax"])


@dataclass(frozen=True)
class Looking:
    """Has a part that looks at the numbers, at an axis that is not there, or at nothing that JAX knows."""

    how: str

    apis: ClassVar[tuple[str, ...]] = ("output",)

    def arguments(self, api: str) -> Arguments:
        return {"observation": (Input(name="x", shape=(3,)),)}

    @api
    def output(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        return Part(self.how).output(scope.child("part"), observation["x"])


@dataclass(frozen=True)
class Part:
    how: str

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        if self.how == "if" and scope.ops.sum(x) > 0:
            return -x
        if self.how == "int":
            return x[:, : int(x[0, 0])]
        if self.how == "numpy":
            return np.sort(x)
        if self.how == "mask":
            return x[x > 0]
        if self.how == "in place":
            x[0] = 0.0
        return x


@pytest.mark.parametrize("how", ["if", "int", "numpy", "mask"])
def test_looking_at_numbers_is_refused_with_the_component_and_what_to_use_instead(how: str) -> None:
    refused = (
        r"part: Part.output: mode 'jax' cannot trace Python that looks at numbers of an array \(if, while, int\(\), "
        r"NumPy functions\); use ops.where for choices and ops.scan for loops, or mode 'torch'"
    )
    with pytest.raises(ConfigError, match=refused) as raised:
        build(Looking(how), mode="jax")
    assert raised.value.__cause__ is not None


def test_what_jax_cannot_do_is_refused_with_the_component_and_the_reason() -> None:
    refused = "part: Part.output: mode 'jax' could not be built: TypeError: .*immutable.*; use mode 'torch'"
    with pytest.raises(ConfigError, match=refused):
        build(Looking("in place"), mode="jax")


def test_an_error_of_the_component_itself_stays_what_it_is(line: Any) -> None:
    class Refusing:
        apis = ("output",)

        def arguments(self, api: str) -> Arguments:
            return {"x": Input(name="x")}

        def output(self, scope: Scope, *, x: Array) -> Array:
            if scope.declaration is None:
                raise ConfigError("not like this")
            return x

    with pytest.raises(ConfigError, match="^not like this"):
        build(Refusing(), mode="jax")
