"""What a mode cannot build is named: the component's path, the operation, and what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box

from rollstream.errors import ConfigError
from rollstream.graph import build
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

FED = {"output": {"x": Box(-1, 1, (4,))}}


@dataclass(frozen=True)
class Inner:
    run: Callable[[Any], Any]

    @api
    def output(self, scope: Scope, x: Array) -> Any:
        return self.run(x)


@dataclass(frozen=True)
class Outer:
    inner: Inner

    @api
    def output(self, scope: Scope, x: Array) -> Any:
        return self.inner.output(scope.child("body"), x)


def _method(x: Any) -> Any:
    return x.cumsum(1)


def _numpy(x: Any) -> Any:
    return np.cumsum(x, axis=1)


def _branch(x: Any) -> Any:
    return x if x[0, 0] > 0 else -x


@pytest.mark.parametrize(
    ("mode", "needs", "run", "told"),
    [
        ("numpy", (), _method, "mode 'numpy' cannot record the array's own cumsum; use the function of ops"),
        ("numpy", (), _numpy, "mode 'numpy' cannot record numpy.cumsum; use mode 'torch' or other ops in the component"),
        (
            "numpy",
            (),
            _branch,
            "a component cannot branch on what an array contains: a recorded program has no branches; use ops.where",
        ),
        ("onnx", ("onnx", "onnxruntime"), _method, "mode 'onnx' cannot do the array's own cumsum; use the function of ops"),
        ("onnx", ("onnx", "onnxruntime"), _numpy, "mode 'onnx' cannot do numpy.cumsum; use the function of ops"),
        ("onnx", ("onnx", "onnxruntime"), _branch, "mode 'onnx' cannot branch on an array's contents; use ops.where"),
        (
            "jax",
            ("jax",),
            _branch,
            "mode 'jax' cannot trace Python that looks at numbers of an array .*; use ops.where for choices",
        ),
    ],
)
def test_the_path_and_the_remedy_are_told(mode: Any, needs: tuple[str, ...], run: Callable[[Any], Any], told: str) -> None:
    for module in needs:
        pytest.importorskip(module)
    with pytest.raises(ConfigError, match=f"^body: Inner.output: {told}"):
        build(Outer(Inner(run)), FED, mode=mode, rows=2)


def test_torch_graph_names_the_line_too() -> None:
    pytest.importorskip("torch")
    with pytest.raises(
        ConfigError, match=r"mode 'torch-graph' could not be built: body: Inner.output \(.*test_unsupported.py, line"
    ):
        build(Outer(Inner(_branch)), FED, mode="torch-graph", rows=2)


@pytest.mark.parametrize("mode", ["numpy", "onnx"])
def test_what_no_array_has_is_an_attribute_error(mode: str) -> None:
    from rollstream.graph.backends.numpy_tape import Tape
    from rollstream.graph.backends.onnx.graph import Value

    values: dict[str, Any] = {
        "numpy": lambda: Tape().input(np.zeros(2, np.float32)),
        "onnx": lambda: Value(None, "x", (2,), np.dtype("f4")),  # type: ignore[arg-type]
    }
    with pytest.raises(AttributeError, match=f"an array in mode '{mode}' has no attribute 'shpe'; use the functions of ops"):
        values[mode]().shpe  # noqa: B018
