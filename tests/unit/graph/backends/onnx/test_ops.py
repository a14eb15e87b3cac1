"""The ONNX op table gives what NumPy's gives, function by function and operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.ops import Ops

pytest.importorskip("onnxruntime")

from rollstream.graph.backends.onnx.executable import session_of
from rollstream.graph.backends.onnx.graph import Graph, Value
from rollstream.graph.backends.onnx.ops import OnnxOps

GENERATOR = np.random.default_rng(0)
X = np.array([[0.5, -1.0, 2.0], [3.0, 3.0, -2.0]], np.float32)
Y = np.array([[1.5, -1.0, 0.25], [-3.0, 2.0, 4.0]], np.float32)
SMALL = np.array([[1e-7, -1e-6, 40.0], [-100.0, 0.0, 1e-3]], np.float32)
INDEX = np.array([2, 0])
WIDE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
PIXELS = GENERATOR.integers(0, 256, (2, 3), np.uint8)
IMAGE = GENERATOR.standard_normal((2, 3, 7, 6)).astype(np.float32)
KERNEL = GENERATOR.standard_normal((4, 3, 3, 2)).astype(np.float32)
BIAS = np.arange(4, dtype=np.float32)
STRANGE = np.array([1.0, np.nan, np.inf, -np.inf], np.float32)

Case = Callable[[Ops, Callable[[np.ndarray], Any]], Any]


def _decayed(carry: tuple[Any, ...], x: Any) -> tuple[tuple[Any, ...], Any]:
    return (0.5 * carry[0] + x,), carry[0] * x


FUNCTIONS: dict[str, Case] = {
    "to_float": lambda ops, a: ops.to_float(a(PIXELS)),
    "to_int": lambda ops, a: ops.to_int(a(X)),
    "constant": lambda ops, a: a(X) * ops.constant(Y),
    "zeros_like": lambda ops, a: ops.zeros_like(a(INDEX)),
    "ones_like": lambda ops, a: ops.ones_like(a(X)),
    "reshape": lambda ops, a: ops.reshape(a(X), (3, 2)),
    "reshape -1": lambda ops, a: ops.reshape(a(WIDE), (2, -1)),
    "transpose": lambda ops, a: ops.transpose(a(WIDE), (2, 0, 1)),
    "concatenate": lambda ops, a: ops.concatenate([a(X), a(Y)], axis=0),
    "stack": lambda ops, a: ops.stack([a(X), a(Y)], axis=-1),
    "take": lambda ops, a: ops.take(a(X), np.array([2, 2, 0, 1])),
    "rows": lambda ops, a: ops.rows(a(WIDE), a(np.array([1, 1, 0]))),
    "linear": lambda ops, a: ops.linear(a(X), a(Y.T.copy()), a(X[0, :2].copy())),
    "matmul": lambda ops, a: ops.matmul(a(WIDE), a(WIDE[:1].transpose(0, 2, 1).copy())),
    "conv": lambda ops, a: ops.conv(a(IMAGE), a(KERNEL), a(BIAS), stride=2),
    "pad": lambda ops, a: ops.pad(a(X), ((1, 0), (0, 2))),
    "dot": lambda ops, a: ops.dot(a(X), a(Y[0].copy())),
    "tanh": lambda ops, a: ops.tanh(a(X)),
    "relu": lambda ops, a: ops.relu(a(X)),
    "sigmoid": lambda ops, a: ops.sigmoid(a(SMALL)),
    "softplus": lambda ops, a: ops.softplus(a(SMALL)),
    "exp": lambda ops, a: ops.exp(a(X)),
    "expm1": lambda ops, a: ops.expm1(a(X)),
    "log": lambda ops, a: ops.log(ops.abs(a(X))),
    "sqrt": lambda ops, a: ops.sqrt(ops.abs(a(X))),
    "sign": lambda ops, a: ops.sign(a(SMALL)),
    "floor": lambda ops, a: ops.floor(a(Y)),
    "abs": lambda ops, a: ops.abs(a(X)),
    "isfinite": lambda ops, a: ops.isfinite(a(STRANGE)),
    "minimum": lambda ops, a: ops.minimum(a(X), a(Y)),
    "maximum": lambda ops, a: ops.maximum(a(X), a(Y)),
    "clip": lambda ops, a: ops.clip(a(X), -1.0, 0.75),
    "clip by arrays": lambda ops, a: ops.clip(a(X), -ops.abs(a(Y)), a(np.float32([0.1, 0.2, 0.3]))),
    "where": lambda ops, a: ops.where(a(X) > 0, a(X), -a(Y)),
    "where of truth": lambda ops, a: ops.where(a(X) > 0, a(X) > 1, a(Y) > 1),
    "sum of all": lambda ops, a: ops.sum(a(X)),
    "sum of an axis": lambda ops, a: ops.sum(a(WIDE), axis=1, keepdims=True),
    "sum of truth": lambda ops, a: ops.sum(a(X) > 0, axis=-1),
    "mean": lambda ops, a: ops.mean(a(WIDE), axis=0),
    "max": lambda ops, a: ops.max(a(WIDE), axis=1, keepdims=True),
    "argmax": lambda ops, a: ops.argmax(a(X)),
    "argmax of integers": lambda ops, a: ops.argmax(a(np.array([[1, 5, 5], [2, 1, 0]]))),
    "cumsum": lambda ops, a: ops.cumsum(a(X)),
    "pick": lambda ops, a: ops.pick(a(X), a(INDEX)),
    "pick of more axes": lambda ops, a: ops.pick(a(WIDE), a(np.array([[3, 0, 1], [2, 2, 0]]))),
    "log_softmax": lambda ops, a: ops.log_softmax(a(X)),
    "stop_gradient": lambda ops, a: ops.stop_gradient(a(X)),
    "scan": lambda ops, a: ops.scan(_decayed, (a(X[0].copy()),), [a(X)])[1],
    "scan_reverse": lambda ops, a: ops.scan_reverse(lambda c, x: 0.5 * c + x, a(X[0].copy()), [a(X)]),
}

OPERATORS: dict[str, Case] = {
    "+ -": lambda ops, a: a(X) + 1.5 - a(Y),
    "numbers on the left": lambda ops, a: 1.0 - 2.0 * a(X),
    "arrays on the left": lambda ops, a: Y * a(X),
    "/": lambda ops, a: a(X) / a(Y),
    "// and % of floats": lambda ops, a: a(X) // 0.75 + a(X) % 0.75,
    "// and % of integers": lambda ops, a: (a(INDEX) - 3) // 2 * 10 + (a(INDEX) - 3) % 2,
    "** 2": lambda ops, a: a(X) ** 2,
    "** 0.5": lambda ops, a: ops.abs(a(X)) ** 0.5,
    "negative": lambda ops, a: -a(X),
    "< <=": lambda ops, a: (a(X) < a(Y)) | (a(X) <= -1.0),
    "> >=": lambda ops, a: (a(X) > a(Y)) & ~(a(X) >= 3.0),
    "== !=": lambda ops, a: (a(INDEX) == 2) ^ (a(INDEX) != np.array([2, 1])),
    "pixels are compared as numbers": lambda ops, a: a(PIXELS) == PIXELS[::-1],
    "broadcast": lambda ops, a: a(X)[:, :, None] + a(WIDE[0]),
    "[t]": lambda ops, a: a(WIDE)[1],
    "[-1]": lambda ops, a: a(WIDE)[:, -1],
    "[a:b:c]": lambda ops, a: a(WIDE)[:, 1:, ::2],
    "[..., -2:, None]": lambda ops, a: a(WIDE)[..., -2:, None],
}


def in_onnx(case: Case) -> np.ndarray:
    """What ONNX Runtime makes of a case."""
    graph, fed = Graph(), {}

    def given(array: np.ndarray) -> Value:
        name = f"x{len(fed)}"
        fed[name] = np.ascontiguousarray(array)
        return graph.input(name, shape=array.shape, dtype=array.dtype)

    result = case(OnnxOps(graph), given)
    found = session_of(graph.model({"result": result}).SerializeToString()).run(None, fed)[0]
    assert found.shape == result.shape
    assert found.dtype == result.dtype
    return np.asarray(found)


def _agree(case: Case) -> None:
    found, expected = in_onnx(case), np.asarray(case(NumpyOps(), np.asarray))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gives_what_numpy_gives(name: str) -> None:
    _agree(FUNCTIONS[name])


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_gives_what_numpy_gives(name: str) -> None:
    _agree(OPERATORS[name])


def test_every_function_of_the_table_is_tested_here() -> None:
    table: Mapping[str, Any] = {name: what for name, what in vars(Ops).items() if not name.startswith("_")}
    assert set(table) <= {name.split()[0] for name in FUNCTIONS}


def test_expm1_keeps_its_digits_near_zero() -> None:
    found = in_onnx(lambda ops, a: ops.expm1(a(SMALL)))
    np.testing.assert_allclose(found, np.expm1(SMALL), rtol=1e-5)


def test_one_number_of_pixels_and_a_fraction_is_float32() -> None:
    """NumPy makes float64 of it, torch and jax float32; weights are float32."""
    assert in_onnx(lambda ops, a: a(PIXELS) * 0.5).dtype == np.float32
