"""Every op of the NumPy table: its values and its gradients are those of torch, and a replayed tape computes what a fresh run would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.graph.backends.numpy_gradient import record_gradient
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.backends.numpy_tape import Recorded, Tape, plain

Make = Callable[[np.random.Generator], list[np.ndarray]]


def _normal(*shapes: tuple[int, ...]) -> Make:
    return lambda r: [np.asarray(r.standard_normal(shape)) for shape in shapes]


def _positive(*shapes: tuple[int, ...]) -> Make:
    return lambda r: [np.asarray(r.uniform(0.2, 2.0, shape)) for shape in shapes]


def _and_index(make: Make, high: int, *shape: int) -> Make:
    return lambda r: [*make(r), np.asarray(r.integers(0, high, shape))]


X = _normal((3, 4))
XY = _normal((3, 4), (3, 4))
LONG = _normal((20, 5))

CASES: dict[str, tuple[Callable[..., Any], Make]] = {
    "reshape": (lambda ops, x: ops.reshape(x, (2, 6)) * 2.0, X),
    "reshape of a transposed": (lambda ops, x: ops.reshape(ops.transpose(x, (1, 0)), (2, 6)), X),
    "transpose": (lambda ops, x: ops.transpose(x, (2, 0, 1)) * 3.0, _normal((2, 3, 4))),
    "concatenate": (lambda ops, x, y: ops.concatenate([x, y, x], axis=0), XY),
    "concatenate columns": (lambda ops, x, y: ops.concatenate([x, y]) ** 2, XY),
    "stack": (lambda ops, x, y: ops.stack([x, y, x]), XY),
    "stack last": (lambda ops, x, y: ops.stack([x, y], axis=-1) ** 2, XY),
    "take": (lambda ops, x: ops.take(x, np.array([3, 3, 0])), X),
    "rows": (lambda ops, x, i: ops.rows(x, i), _and_index(X, 3, 6)),
    "linear": (lambda ops, x, w, b: ops.linear(x, w, b), _normal((3, 4), (4, 5), (5,))),
    "linear of one row": (lambda ops, x, w, b: ops.linear(x, w, b), _normal((1, 4), (4, 1), (1,))),
    "matmul": (lambda ops, x, y: ops.matmul(x, y), _normal((3, 4), (4, 2))),
    "matmul of many": (lambda ops, x, y: ops.matmul(x, y), _normal((2, 5, 3, 4), (5, 4, 2))),
    "conv": (lambda ops, x, w, b: ops.conv(x, w, b, stride=2), _normal((2, 3, 7, 8), (4, 3, 3, 2), (4,))),
    "conv of many images, in blocks": (
        lambda ops, x, w, b: ops.conv(ops.transpose(x, (0, 3, 1, 2)) * 0.1, w, b, stride=1),
        _normal((5, 40, 40, 3), (2, 3, 4, 4), (2,)),
    ),
    "conv of conv": (
        lambda ops, x, w, b, v: ops.conv(ops.relu(ops.conv(x, w, b, stride=1)), v, b, stride=2),
        _normal((2, 3, 8, 8), (4, 3, 3, 3), (4,), (4, 4, 2, 2)),
    ),
    "pad": (lambda ops, x: ops.pad(x, ((0, 0), (1, 2))) * 2.0, X),
    "dot": (lambda ops, x, y: ops.dot(x, y), _normal((3, 4), (4,))),
    "dot of vectors": (lambda ops, x, y: ops.dot(x, y), _normal((4,), (4,))),
    "tanh": (lambda ops, x: ops.tanh(x), X),
    "relu": (lambda ops, x: ops.relu(x), X),
    "sigmoid": (lambda ops, x: ops.sigmoid(x * 10.0), X),
    "softplus": (lambda ops, x: ops.softplus(x * 10.0), X),
    "exp": (lambda ops, x: ops.exp(x), X),
    "expm1": (lambda ops, x: ops.expm1(x), X),
    "log": (lambda ops, x: ops.log(x), _positive((3, 4))),
    "sqrt": (lambda ops, x: ops.sqrt(x), _positive((3, 4))),
    "sign": (lambda ops, x: ops.sign(x) * x, X),
    "floor": (lambda ops, x: ops.floor(x * 3.0) * x, X),
    "abs": (lambda ops, x: ops.abs(x), X),
    "minimum": (lambda ops, x, y: ops.minimum(x, y), XY),
    "minimum of equals": (lambda ops, x: ops.minimum(x, x * 1.0), X),
    "maximum": (lambda ops, x, y: ops.maximum(x, y), _normal((3, 4), (4,))),
    "clip": (lambda ops, x: ops.clip(x, -0.5, 0.5), X),
    "clip by learned bounds": (lambda ops, x, y: ops.clip(x, y - 0.5, y + 0.5), _normal((3, 4), ())),
    "where": (lambda ops, x, y: ops.where(x > 0.0, x * y, y), XY),
    "where it would be infinite": (lambda ops, x: ops.where(x > 0.0, ops.log(ops.abs(x)), x), X),
    "sum": (lambda ops, x: ops.sum(x) * x, X),
    "sum of rows": (lambda ops, x: ops.sum(x, axis=-1) ** 2, LONG),
    "sum of columns": (lambda ops, x: ops.sum(x, axis=0, keepdims=True) * x, LONG),
    "sum of the middle": (lambda ops, x: ops.sum(x, axis=1) ** 2, _normal((2, 3, 4))),
    "mean": (lambda ops, x: ops.mean(x, keepdims=True) * x, X),
    "mean of rows": (lambda ops, x: ops.mean(x, axis=-1, keepdims=True) * x, X),
    "max": (lambda ops, x: ops.max(x) ** 2, LONG),
    "max of columns": (lambda ops, x: ops.max(x, axis=0, keepdims=True) * x, LONG),
    "cumsum": (lambda ops, x: ops.cumsum(x) ** 2, X),
    "pick": (lambda ops, x, i: ops.pick(x, i) ** 2, _and_index(X, 4, 3)),
    "pick of one row": (lambda ops, x, i: ops.pick(x, i), _and_index(_normal((1, 4)), 4, 1)),
    "pick from many axes": (lambda ops, x, i: ops.pick(x, i), _and_index(_normal((2, 3, 4)), 4, 2, 3)),
    "log_softmax": (lambda ops, x: ops.log_softmax(x) ** 2, X),
    "log_softmax of many rows": (lambda ops, x: ops.log_softmax(x) * x, LONG),
    "log_softmax of three axes": (lambda ops, x: ops.log_softmax(x) * x, _normal((2, 3, 4))),
    "stop_gradient": (lambda ops, x, y: ops.stop_gradient(x * y) * y * x, XY),
    "scan": (
        lambda ops, x, c: _both(ops.scan(lambda carry, row: ((carry[0] * 0.5 + row,), carry[0] * row), (c,), (x,))),
        _normal((3, 4), (4,)),
    ),
    "scan_reverse": (lambda ops, x, c: ops.scan_reverse(lambda carry, row: carry * 0.5 + row, c, (x,)), _normal((3, 4), (4,))),
    "scan_reverse of one series": (
        lambda ops, x, c: ops.scan_reverse(lambda carry, y: carry * 0.5 + y, c, (x,)),
        _normal((4,), ()),
    ),
    "operators": (lambda ops, x, y: (2.0 - x) * (x + 1) / (y + 3.0) - x / 2, _positive((3, 4), (4,))),
    "right operators": (lambda ops, x: 2.0 / x + 3 * x - (-x), _positive((3, 4))),
    "powers": (lambda ops, x, y: x**2 + x**3 + x**0.5 + x**y + x**1, _positive((3, 4), (3, 4))),
    "products with itself": (lambda ops, x: x * x + (x + x), X),
    "broadcasts": (lambda ops, x, y, z: x * y + z * x - y * z, _normal((3, 4), (3, 1), ())),
    "slices": (lambda ops, x: x[1] * x[:2, 1:2] + x[:, None, 0][0] - x[-1, ::2][0], X),
    "a slice backwards": (lambda ops, x: x[:, ::-1] * x, X),
    "a slice and the whole": (lambda ops, x: (x + 0.0)[:1] * (x + 0.0), X),
}
NO_GRADIENT: dict[str, tuple[Callable[..., Any], Make]] = {
    "argmax": (lambda ops, x: ops.argmax(x), LONG),
    "isfinite": (lambda ops, x: ops.isfinite(ops.exp(x * 200.0)), X),
    "comparisons": (lambda ops, x, y: ((x > y) & (x >= 0.0)) | ~(y < 0.5) | (x == y) | (x != 1), XY),
    "count": (lambda ops, x: ops.sum(x > 0.0, axis=-1), X),
    "to_int": (lambda ops, x: ops.to_int(x * 3.0), X),
    "integers": (lambda ops, x, i: i * 2 + i // 2 - 1, _and_index(X, 9, 3)),
    "max of integers": (lambda ops, x, i: ops.max(i), _and_index(X, 9, 3, 4)),
    "zeros_like": (lambda ops, x: ops.zeros_like(x) + ops.ones_like(x), X),
}
ALL = {**CASES, **NO_GRADIENT}
NOT_IN_TORCH = {"a slice backwards"}


def _both(scanned: Any) -> Any:
    (carry,), y = scanned
    return y * 2.0 + carry


def _drawn(make: Make, dtype: type, seed: int = 0) -> list[np.ndarray]:
    arrays = make(np.random.default_rng(seed))
    return [array.astype(dtype) if array.dtype.kind == "f" else array for array in arrays]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(set(ALL) - NOT_IN_TORCH))
def test_values_are_those_of_torch(name: str, dtype: type) -> None:
    torch = pytest.importorskip("torch")
    from rollstream.graph.backends.torch.ops import TorchOps

    function, make = ALL[name]
    arrays = _drawn(make, dtype)
    with np.errstate(over="ignore"):
        found = np.asarray(function(NumpyOps(dtype=dtype), *arrays))
    wanted = function(TorchOps(), *map(torch.from_numpy, arrays)).numpy()
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype is np.float32 else 1e-12, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_a_replay_computes_what_a_fresh_run_would(name: str) -> None:
    function, make = ALL[name]
    tape, buffers = Tape(), _drawn(make, np.float32)
    with np.errstate(over="ignore"):
        recorded = function(NumpyOps(), *map(tape.input, buffers))
    for seed in (1, 2):
        arrays = _drawn(make, np.float32, seed)
        for buffer, array in zip(buffers, arrays, strict=True):
            buffer[...] = array
        with np.errstate(over="ignore"):
            tape.run()
            fresh = np.asarray(function(NumpyOps(), *arrays))
        assert plain(recorded).dtype == fresh.dtype
        np.testing.assert_allclose(plain(recorded), fresh, rtol=1e-5, atol=1e-6)


def _recorded_gradients(function: Callable[..., Any], arrays: list[np.ndarray], weights: np.ndarray) -> list[np.ndarray]:
    """Of the weighted sum of the outputs, by every floating-point array; from a replay on other numbers than were recorded."""
    tape, dtype = Tape(dtype=weights.dtype.type), weights.dtype
    buffers = [np.full_like(array, 0.5) if array.dtype.kind == "f" else np.zeros_like(array) for array in arrays]
    gradients = [np.full_like(buffer, np.nan) if buffer.dtype.kind == "f" else buffer for buffer in buffers]
    inputs = [
        tape.parameter(buffer, gradient) if buffer.dtype.kind == "f" else tape.input(buffer)
        for buffer, gradient in zip(buffers, gradients, strict=True)
    ]
    ops = NumpyOps(dtype=dtype.type)
    with np.errstate(all="ignore"):
        loss = ops.sum(function(ops, *inputs) * weights)
        assert isinstance(loss, Recorded)
        record_gradient(loss)
        for _ in range(2):
            for buffer, array in zip(buffers, arrays, strict=True):
                buffer[...] = array
            tape.run()
    return [gradient for gradient in gradients if gradient.dtype.kind == "f"]


@pytest.mark.parametrize("name", sorted(set(CASES) - NOT_IN_TORCH))
def test_gradients_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    from rollstream.graph.backends.torch.ops import TorchOps

    function, make = CASES[name]
    arrays = _drawn(make, np.float64)
    tensors = [torch.from_numpy(array) for array in arrays]
    leaves = [tensor.requires_grad_() for tensor in tensors if tensor.dtype == torch.float64]
    out = function(TorchOps(), *tensors)
    weights = np.random.default_rng(9).uniform(0.5, 1.5, out.shape)
    wanted = torch.autograd.grad((out * torch.from_numpy(weights)).sum(), leaves)
    found = _recorded_gradients(function, arrays, weights)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", sorted(set(CASES) - {"stop_gradient"}))
def test_gradients_are_finite_differences(name: str) -> None:
    function, make = CASES[name]
    arrays, ops = _drawn(make, np.float64, seed=3), NumpyOps(dtype=np.float64)
    weights = np.random.default_rng(9).uniform(0.5, 1.5, np.shape(function(ops, *arrays)))
    floats = [array for array in arrays if array.dtype.kind == "f"]
    found = _recorded_gradients(function, arrays, weights)
    generator = np.random.default_rng(4)
    for _ in range(3):
        directions = [generator.standard_normal(array.shape) for array in floats]
        ends = []
        for sign in (1.0, -1.0):
            moving = iter(directions)
            moved = [array + sign * 1e-6 * next(moving) if array.dtype.kind == "f" else array for array in arrays]
            ends.append(float(np.sum(function(ops, *moved) * weights)))
        slope = sum(float(np.sum(gradient * direction)) for gradient, direction in zip(found, directions, strict=True))
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-6)


def test_matrices_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"matmul: shapes \[2, 3\] and \[4, 2\] do not fit"):
        NumpyOps().matmul(np.zeros((2, 3), np.float32), np.zeros((4, 2), np.float32))


@pytest.mark.parametrize("x", [-1e4, -200.0, -20.0, 0.0, 20.0, 200.0, 1e4])
def test_sigmoid_and_softplus_neither_overflow_nor_lose_small_numbers(x: float) -> None:
    array = np.full(1, x, np.float32)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        sigmoid, softplus = NumpyOps().sigmoid(array), NumpyOps().softplus(array)
    exact = 1.0 / (1.0 + np.exp(-np.longdouble(x)))
    assert float(sigmoid[0]) == pytest.approx(float(exact), rel=1e-5, abs=1e-37)
    assert float(softplus[0]) == pytest.approx(float(max(x, 0.0) + np.log1p(np.exp(-abs(np.longdouble(x))))), rel=1e-5, abs=1e-37)


def test_logits_of_minus_infinity_have_probability_0() -> None:
    found = NumpyOps().log_softmax(np.array([[0.0, -np.inf, 0.0]], np.float32))
    np.testing.assert_allclose(np.exp(found), [[0.5, 0.0, 0.5]], atol=1e-7)
