"""APIs in ONNX Runtime: buffers, parameters where they lie, state, packed parameters, and what cannot be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import Memory, build, declare
from rollstream.graph.initializers import Constant
from rollstream.graph.inputs import Input
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

pytest.importorskip("onnxruntime")

from rollstream.graph.backends.onnx.executable import PACK_AFTER_ROWS, OnnxExecutable, PackedOnnxExecutable

ROWS = Input(name="x", shape=(2,))


@dataclass(frozen=True)
class Inner:
    """A part whose one function is given from outside."""

    function: Callable[[Any, Any], Any]

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        return self.function(scope.ops, x)


@dataclass(frozen=True)
class Outer:
    """Asks its part."""

    function: Callable[[Any, Any], Any]
    apis = ("output",)

    def arguments(self, api: str) -> dict[str, Input]:
        return {"x": ROWS}

    @api
    def output(self, scope: Scope, *, x: Array) -> Array:
        return Inner(self.function).output(scope.child("torso").child("inner"), x)


@dataclass(frozen=True)
class Sum:
    """Multiplies by a parameter, and remembers the sum of all it has seen."""

    apis = ("output", "observe")

    def arguments(self, api: str) -> dict[str, Input]:
        return {"x": ROWS}

    @api
    def output(self, scope: Scope, *, x: Array) -> Array:
        return x * scope.parameter("weight", (2,), Constant(value=2.0)) + scope.target().parameter("weight", (2,), Constant())

    @api
    def observe(self, scope: Scope, *, x: Array) -> Array:
        total = scope.state("total", (2,), initial=1.0) + scope.ops.sum(x, axis=0)
        scope.set_state("total", total)
        return total


def _memory(target: bool = False) -> Memory:
    declared = declare(Sum())
    return Memory(
        layout=declared.layout,
        flat=declared.layout.init(0),
        target=np.full(2, 10.0, np.float32) if target else None,
        state_layout=declared.state_layout,
        state=declared.state_layout.init(0),
    )


def test_parameters_are_read_where_they_lie() -> None:
    memory = _memory()
    executable = OnnxExecutable(Sum(), api="output", rows=1, memory=memory)
    executable.inputs["x"][...] = [[1.0, -1.0]]
    assert executable.run()["output"].tolist() == [[4.0, 0.0]]
    memory.flat[...] = [3.0, 5.0]
    assert executable.run()["output"].tolist() == [[6.0, 0.0]]


def test_the_target_network_has_parameters_of_its_own() -> None:
    executable = OnnxExecutable(Sum(), api="output", rows=1, memory=_memory(target=True))
    executable.inputs["x"][...] = [[1.0, -1.0]]
    assert executable.run()["output"].tolist() == [[12.0, 8.0]]


def test_new_state_is_written_where_the_old_one_lies() -> None:
    memory = _memory()
    executable = OnnxExecutable(Sum(), api="observe", rows=2, memory=memory)
    executable.inputs["x"][...] = [[1.0, 2.0], [3.0, 4.0]]
    executable.run()
    executable.run()
    assert memory.state.tolist() == [9.0, 13.0]


def _run_until_packed(executable: PackedOnnxExecutable) -> None:
    for _ in range(PACK_AFTER_ROWS + 1):
        executable.run()


def test_packed_parameters_change_when_it_is_said() -> None:
    memory = _memory()
    executable = PackedOnnxExecutable(Sum(), api="output", rows=1, memory=memory)
    executable.inputs["x"][...] = [[1.0, -1.0]]
    for flat, expected in (([2.0, 2.0], [4.0, 0.0]), ([3.0, 5.0], [6.0, 0.0]), ([4.0, 5.0], [8.0, 0.0])):
        memory.flat[...] = flat
        executable.repack()
        assert executable.run()["output"].tolist() == [expected]
        _run_until_packed(executable)
        assert executable.run()["output"].tolist() == [expected]


def test_parameters_are_packed_once_that_pays_and_not_before() -> None:
    memory = _memory()
    executable = PackedOnnxExecutable(Sum(), api="output", rows=PACK_AFTER_ROWS, memory=memory)
    executable.inputs["x"][...] = 1.0
    plain = executable._session
    executable.run()
    assert executable._session is plain
    memory.flat[...] = 5.0
    assert executable.run()["output"][0].tolist() == [10.0, 10.0]  # the second run packs what is there
    assert executable._session is not plain
    memory.flat[...] = 7.0
    executable.repack()
    assert executable.run()["output"][0].tolist() == [14.0, 14.0]
    assert executable._session is plain


def test_packed_executables_read_state_where_it_lies() -> None:
    memory = _memory()
    executable = PackedOnnxExecutable(Sum(), api="observe", rows=1, memory=memory)
    _run_until_packed(executable)
    memory.state[...] = 5.0
    assert executable.run()["output"].tolist() == [5.0, 5.0]
    assert memory.state.tolist() == [5.0, 5.0]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda ops, x: np.sin(x), "cannot do numpy.sin; use the function of ops, or mode 'torch'"),
        (lambda ops, x: np.add.reduce(x), "cannot do numpy.add.reduce; use the function of ops"),
        (lambda ops, x: np.concatenate([x, x]), "cannot do numpy.concatenate; use the function of ops"),
        (lambda ops, x: x if (x > 0)[0, 0] else -x, "cannot branch on an array's contents; use ops.where"),
        (lambda ops, x: x[x > 0], "cannot index with a Value; use ranges, numbers and None, or ops.take, ops.pick"),
        (lambda ops, x: x[::-1], r"cannot index with slice\(None, None, -1\); use ranges, numbers and None, or ops.take"),
    ],
)
def test_what_onnx_cannot_do_is_named_with_its_place(function: Callable[[Any, Any], Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=f"torso.inner: Inner.output: mode 'onnx' {reason}"):
        build(Outer(function), mode="onnx")


def test_a_component_that_returns_its_input_works() -> None:
    built = build(Outer(lambda ops, x: x), mode="onnx")
    assert built("output", x=np.ones((1, 2), np.float32))["output"].tolist() == [[1.0, 1.0]]
