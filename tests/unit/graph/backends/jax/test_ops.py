"""Each op of the JAX table against NumPy's: values, shapes and dtypes; and slopes where tables could differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

import jax

from rollstream.graph.backends.jax.ops import JaxOps
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.ops import Ops

X = np.array([[0.5, -1.0, 2.0], [3.0, 3.0, -2.0]], np.float32)
IMAGE = np.arange(2 * 3 * 6 * 5, dtype=np.float32).reshape(2, 3, 6, 5) % 7 - 3
KERNEL = np.arange(4 * 3 * 3 * 2, dtype=np.float32).reshape(4, 3, 3, 2) % 5 - 2
INDEX = np.array([2, 0])
LARGE = np.array([2**40 + 1, -7])
BYTES = np.array([[200, 255], [0, 1]], np.uint8)

Case = Callable[[Ops, Callable[[np.ndarray], Any]], Any]

CASES: dict[str, Case] = {
    "to_float of integers": lambda ops, a: ops.to_float(a(INDEX)),
    "to_float of bytes": lambda ops, a: ops.to_float(a(BYTES)),
    "to_float of float64": lambda ops, a: ops.to_float(a(X.astype(np.float64) / 3)),
    "to_int": lambda ops, a: ops.to_int(a(X * 0.9)),
    "to_int of large integers": lambda ops, a: ops.to_int(a(LARGE)) + 1,
    "constant": lambda ops, a: a(X) * ops.constant(X),
    "constant of large integers": lambda ops, a: a(LARGE) - ops.constant(LARGE - 3),
    "zeros_like": lambda ops, a: ops.zeros_like(a(X)),
    "ones_like": lambda ops, a: ops.ones_like(a(INDEX)),
    "reshape": lambda ops, a: ops.reshape(a(X), (3, 2)),
    "transpose": lambda ops, a: ops.transpose(a(IMAGE), (0, 2, 3, 1)),
    "concatenate": lambda ops, a: ops.concatenate([a(X), a(X)], axis=0),
    "concatenate along the last axis": lambda ops, a: ops.concatenate([a(X), a(-X)]),
    "stack": lambda ops, a: ops.stack([a(X), a(X)]),
    "stack along a later axis": lambda ops, a: ops.stack([a(X), a(-X)], axis=1),
    "take": lambda ops, a: ops.take(a(X), np.array([2, 2, 0, 1])),
    "rows": lambda ops, a: ops.rows(a(X.T.copy()), a(INDEX)),
    "linear": lambda ops, a: ops.linear(a(X), a(X.T.copy()), a(X[0, :2].copy())),
    "matmul": lambda ops, a: ops.matmul(a(IMAGE), a(IMAGE[:, :, :5, :2].copy())),
    "conv": lambda ops, a: ops.conv(a(IMAGE), a(KERNEL), a(np.array([1, 2, 3, 4], np.float32)), stride=1),
    "conv with a stride": lambda ops, a: ops.conv(a(IMAGE), a(KERNEL), a(np.zeros(4, np.float32)), stride=2),
    "pad": lambda ops, a: ops.pad(a(X), ((1, 0), (0, 2))),
    "dot": lambda ops, a: ops.dot(a(X), a(X[0].copy())),
    "tanh": lambda ops, a: ops.tanh(a(X)),
    "relu": lambda ops, a: ops.relu(a(X)),
    "sigmoid": lambda ops, a: ops.sigmoid(a(X)),
    "softplus": lambda ops, a: ops.softplus(a(X * 50)),
    "exp": lambda ops, a: ops.exp(a(X)),
    "expm1": lambda ops, a: ops.expm1(a(X)),
    "log": lambda ops, a: ops.log(ops.abs(a(X))),
    "sqrt": lambda ops, a: ops.sqrt(ops.abs(a(X))),
    "sign": lambda ops, a: ops.sign(a(X - 0.5)),
    "floor": lambda ops, a: ops.floor(a(X * 0.7)),
    "abs": lambda ops, a: ops.abs(a(X)),
    "isfinite": lambda ops, a: ops.isfinite(a(np.array([1.0, np.nan, np.inf], np.float32))),
    "minimum": lambda ops, a: ops.minimum(a(X), -a(X)),
    "maximum": lambda ops, a: ops.maximum(a(X), -a(X)),
    "clip": lambda ops, a: ops.clip(a(X), -1.0, 0.75),
    "clip to arrays": lambda ops, a: ops.clip(a(X), a(-X[1]), a(X[0] + 1)),
    "clip of a number that is none": lambda ops, a: ops.clip(a(np.array([np.nan, 2.0], np.float32)), 0.0, 1.0),
    "where": lambda ops, a: ops.where(a(X) > 0, a(X), -a(X)),
    "sum of all": lambda ops, a: ops.sum(a(X)),
    "sum of an axis": lambda ops, a: ops.sum(a(X), axis=0),
    "sum that counts": lambda ops, a: ops.sum(a(X) > 0, axis=-1),
    "sum that keeps the axis": lambda ops, a: ops.sum(a(X), axis=-1, keepdims=True),
    "mean of all": lambda ops, a: ops.mean(a(X)),
    "mean that keeps the axis": lambda ops, a: ops.mean(a(X), axis=0, keepdims=True),
    "max": lambda ops, a: ops.max(a(X)),
    "max that keeps the axis": lambda ops, a: ops.max(a(X), axis=0, keepdims=True),
    "argmax, the first of equals": lambda ops, a: ops.argmax(a(X)),
    "cumsum": lambda ops, a: ops.cumsum(a(X)),
    "pick": lambda ops, a: ops.pick(a(X), a(INDEX)),
    "pick of a higher rank": lambda ops, a: ops.pick(a(IMAGE), a(np.arange(36).reshape(2, 3, 6) % 5)),
    "log_softmax": lambda ops, a: ops.log_softmax(a(X * 40)),
    "stop_gradient": lambda ops, a: ops.stop_gradient(a(X)),
    "scan, what it gives": lambda ops, a: ops.scan(_step, (a(X[0].copy()), a(X[1].copy())), [a(X), a(X * 2)])[1],
    "scan, what it carries": lambda ops, a: ops.scan(_step, (a(X[0].copy()), a(X[1].copy())), [a(X), a(X * 2)])[0][1],
    "scan_reverse": lambda ops, a: ops.scan_reverse(lambda c, x: 0.5 * c + x, a(X[0].copy()), [a(X)]),
    "scan_reverse of one series": lambda ops, a: ops.scan_reverse(lambda c, x: 0.5 * c + x, a(X[0, 0]), [a(X[0].copy())]),
    "slices": lambda ops, a: a(IMAGE)[:, 1, 2:5, None, ::2],
}


def _step(carry: tuple[Any, ...], x: Any, y: Any) -> tuple[tuple[Any, ...], Any]:
    first, second = carry
    return (first * 0.5 + x, second - y), first + second


@pytest.mark.parametrize("name", CASES)
def test_jax_agrees_with_numpy(name: str) -> None:
    expected = np.asarray(CASES[name](NumpyOps(), np.asarray))
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(lambda: CASES[name](JaxOps(), jax.numpy.asarray))())
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_no_op_is_forgotten() -> None:
    tried = {name.replace(",", " ").split()[0] for name in CASES}
    assert {name for name in vars(Ops) if not name.startswith("_")} <= tried


def _slope(function: Callable[[Any], Any], at: float) -> float:
    return float(jax.grad(function)(np.float32(at)))


@pytest.mark.parametrize(("at", "slope"), [(-2.0, 0.0), (-1.0, 1.0), (0.0, 1.0), (1.0, 1.0), (2.0, 0.0)])
def test_a_number_on_the_edge_of_a_clip_still_learns_as_in_torch(at: float, slope: float) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(at, requires_grad=True)
    torch.clamp(x, -1.0, 1.0).backward()
    assert _slope(lambda x: JaxOps().clip(x, -1.0, 1.0), at) == x.grad.item() == slope


def test_relu_is_flat_at_zero() -> None:
    assert _slope(JaxOps().relu, 0.0) == 0.0


def test_nothing_flows_through_stop_gradient() -> None:
    assert _slope(lambda x: x * JaxOps().stop_gradient(x), 3.0) == 3.0


def test_slopes_flow_through_scans() -> None:
    def total(x: Any) -> Any:
        ops, ones = JaxOps(), jax.numpy.ones(3)
        carry, given = ops.scan(lambda carry, now: ((carry[0] * x + now,), carry[0]), (x,), [ones])
        return carry[0] + ops.sum(given) + ops.sum(ops.scan_reverse(lambda after, now: after * x + now, x, [ones]))

    # carries 2, 5, 11, 23: given x, x^2+1, x^3+x+1; last x^4+x^2+x+1; backwards x^2+1, x^3+x+1, x^4+x^2+x+1
    assert _slope(total, 2.0) == pytest.approx((1 + 4 + 13) + 37 + (4 + 13 + 37))
