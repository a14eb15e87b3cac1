"""The way back through a tape: random compositions by autograd, and what is not computed at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.errors import ConfigError
from rollstream.graph.backends.numpy_gradient import record_gradient
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.backends.numpy_tape import Tape, elementwise

ONE: dict[str, Callable[..., Any]] = {
    "tanh": lambda ops, x: ops.tanh(x),
    "softplus": lambda ops, x: ops.softplus(x),
    "log_softmax": lambda ops, x: ops.log_softmax(x),
    "square": lambda ops, x: (x * 0.5) ** 2,
    "turned": lambda ops, x: ops.transpose(x, (1, 0)),
    "laid out": lambda ops, x: ops.reshape(ops.reshape(x, (9,)), (3, 3)),
    "centred": lambda ops, x: x - ops.mean(x, axis=0, keepdims=True),
    "shifted": lambda ops, x: ops.concatenate([x[:, 1:], x[:, :1]]),
    "summed up": lambda ops, x: ops.cumsum(x) * 0.3,
    "row": lambda ops, x: ops.stack([x[0], x[2], x[0]]),
    "scanned": lambda ops, x: ops.scan_reverse(lambda carry, row: 0.5 * carry + row, x[0], (x,)),
    "scaled": lambda ops, x: x * ops.sum(x) * 0.1,
}
TWO: dict[str, Callable[..., Any]] = {
    "add": lambda ops, x, y: x + y,
    "multiply": lambda ops, x, y: x * y,
    "product": lambda ops, x, y: ops.matmul(x, y) * 0.3,
    "linear": lambda ops, x, y: ops.linear(x, y, x[0]) * 0.3,
    "minimum": lambda ops, x, y: ops.minimum(x, y),
    "chosen": lambda ops, x, y: ops.where(x > 0.1, x, y),
    "over": lambda ops, x, y: x / (ops.abs(y) + 1.0),
}
STEPS = st.lists(st.tuples(st.sampled_from(sorted({**ONE, **TWO})), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9)


def _composed(ops: Any, steps: list[tuple[str, int, int]], *first: Any) -> Any:
    """Each step works on arrays that any earlier step gave."""
    known = list(first)
    for name, one, other in steps:
        if name in ONE:
            known.append(ONE[name](ops, known[one % len(known)]))
        else:
            known.append(TWO[name](ops, known[one % len(known)], known[other % len(known)]))
    return ops.sum(known[-1] * known[len(known) // 2])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(steps=STEPS, seed=st.integers(0, 1000))
def test_gradients_of_compositions_are_those_of_autograd(steps: list[tuple[str, int, int]], seed: int) -> None:
    torch = pytest.importorskip("torch")
    from rollstream.graph.backends.torch.ops import TorchOps

    arrays = list(np.random.default_rng(seed).standard_normal((2, 3, 3)))
    tape = Tape(dtype=np.float64)
    buffers = [np.zeros((3, 3)) for _ in arrays]
    gradients = [np.zeros((3, 3)) for _ in arrays]
    record_gradient(_composed(NumpyOps(dtype=np.float64), steps, *map(tape.parameter, buffers, gradients)))
    for _ in range(2):  # a second replay must not add to the first
        for buffer, array in zip(buffers, arrays, strict=True):
            buffer[...] = array
        tape.run()
    leaves = [torch.from_numpy(array).requires_grad_() for array in arrays]
    loss = _composed(TorchOps(), steps, *leaves)
    for found, wanted in zip(
        gradients, torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True), strict=True
    ):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-8, atol=1e-8 * (1.0 + abs(loss.item())))


def test_what_no_parameter_flows_into_costs_nothing_on_the_way_back() -> None:
    ops, gradient = NumpyOps(), np.zeros((4, 1), np.float32)

    def calls(*, behind: Callable[[Any], Any]) -> int:
        """How many calls the way back takes."""
        tape = Tape()
        x = tape.input(np.ones((3, 4), np.float32))
        weight = tape.parameter(np.ones((4, 1), np.float32), gradient)
        loss = ops.sum(ops.matmul(behind(x), weight))
        forward = len(tape)
        record_gradient(loss)
        return len(tape) - forward

    alone = calls(behind=lambda x: x)
    assert calls(behind=lambda x: ops.tanh(ops.exp(x) * x)) == alone
    assert alone <= 2


def test_gradient_stops_where_it_is_stopped() -> None:
    tape, gradient = Tape(), np.full(3, 7.0, np.float32)
    x = tape.parameter(np.ones(3, np.float32), gradient)
    record_gradient(NumpyOps().sum(NumpyOps().stop_gradient(x * 2.0)))
    tape.run()
    assert gradient.tolist() == [7.0] * 3


def test_a_parameter_that_is_used_twice_gets_the_sum() -> None:
    ops, tape, gradient = NumpyOps(), Tape(), np.zeros((2, 2), np.float32)
    weight = tape.parameter(np.array([[1, 2], [3, 4]], np.float32), gradient)
    x = tape.input(np.array([[1, 1]], np.float32))
    record_gradient(ops.sum(ops.matmul(ops.matmul(x, weight), weight)))
    for _ in range(2):
        tape.run()
    assert gradient.tolist() == [[3 + 4, 7 + 4], [3 + 6, 7 + 6]]


def test_an_operation_without_a_rule_is_refused_by_name_with_what_to_use() -> None:
    tape = Tape()
    x = tape.parameter(np.ones(3, np.float32), np.zeros(3, np.float32))
    with pytest.raises(ConfigError, match="mode 'numpy' has no gradient of cosh; use mode 'torch' or other ops in the loss"):
        record_gradient(NumpyOps().sum(elementwise(np.cosh, x)))
