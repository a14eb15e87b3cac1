"""Both op tables give the same for the same, function by function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.ops import Ops

X = np.array([[0.5, -1.0, 2.0], [3.0, 3.0, -2.0]], np.float32)
INDEX = np.array([2, 0])

CASES: dict[str, Callable[[Ops, Callable[[np.ndarray], Any]], Any]] = {
    "to_float": lambda ops, a: ops.to_float(a(INDEX)),
    "constant": lambda ops, a: a(X) * ops.constant(X),
    "zeros_like": lambda ops, a: ops.zeros_like(a(X)),
    "ones_like": lambda ops, a: ops.ones_like(a(X)),
    "reshape": lambda ops, a: ops.reshape(a(X), (3, 2)),
    "concatenate": lambda ops, a: ops.concatenate([a(X), a(X)], axis=0),
    "stack": lambda ops, a: ops.stack([a(X), a(X)]),
    "take": lambda ops, a: ops.take(a(X), np.array([2, 2, 0, 1])),
    "linear": lambda ops, a: ops.linear(a(X), a(X.T.copy()), a(X[0, :2].copy())),
    "dot": lambda ops, a: ops.dot(a(X), a(X[0].copy())),
    "tanh": lambda ops, a: ops.tanh(a(X)),
    "relu": lambda ops, a: ops.relu(a(X)),
    "exp": lambda ops, a: ops.exp(a(X)),
    "expm1": lambda ops, a: ops.expm1(a(X)),
    "log": lambda ops, a: ops.log(ops.abs(a(X))),
    "sqrt": lambda ops, a: ops.sqrt(ops.abs(a(X))),
    "isfinite": lambda ops, a: ops.isfinite(a(X)),
    "minimum": lambda ops, a: ops.minimum(a(X), -a(X)),
    "maximum": lambda ops, a: ops.maximum(a(X), -a(X)),
    "clip": lambda ops, a: ops.clip(a(X), -1.0, 0.75),
    "where": lambda ops, a: ops.where(a(X) > 0, a(X), -a(X)),
    "sum of all": lambda ops, a: ops.sum(a(X)),
    "sum of an axis": lambda ops, a: ops.sum(a(X), axis=0),
    "max": lambda ops, a: ops.max(a(X)),
    "argmax": lambda ops, a: ops.argmax(a(X)),
    "cumsum": lambda ops, a: ops.cumsum(a(X)),
    "pick": lambda ops, a: ops.pick(a(X), a(INDEX)),
    "log_softmax": lambda ops, a: ops.log_softmax(a(X)),
    "stop_gradient": lambda ops, a: ops.stop_gradient(a(X)),
    "scan_reverse": lambda ops, a: ops.scan_reverse(lambda c, x: 0.5 * c + x, a(X[0].copy()), [a(X)]),
    "scan_reverse of one series": lambda ops, a: ops.scan_reverse(lambda c, x: 0.5 * c + x, a(X[0, 0]), [a(X[0].copy())]),
}


@pytest.mark.parametrize("name", CASES)
def test_torch_agrees_with_numpy(name: str) -> None:
    torch = pytest.importorskip("torch")
    from rollstream.graph.backends.torch.ops import TorchOps

    expected = np.asarray(CASES[name](NumpyOps(), np.asarray))
    found = CASES[name](TorchOps(), lambda array: torch.from_numpy(np.array(array))).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_pick_takes_one_entry_of_each_row() -> None:
    assert NumpyOps().pick(X, INDEX).tolist() == [2.0, 3.0]


def test_the_first_of_equal_maxima_is_chosen() -> None:
    assert NumpyOps().argmax(X).tolist() == [2, 0]


def test_a_reverse_scan_of_one_series_equals_that_of_a_matrix_with_one_column() -> None:
    ops, series = NumpyOps(), np.array([1.0, 2.0, 3.0], np.float32)
    flat = ops.scan_reverse(lambda c, x: 0.5 * c + x, np.float32(0), [series])
    matrix = ops.scan_reverse(lambda c, x: 0.5 * c + x, np.zeros(1, np.float32), [series[:, None]])
    assert flat.tolist() == matrix[:, 0].tolist() == [2.75, 3.5, 3.0]
