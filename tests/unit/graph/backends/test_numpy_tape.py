"""Recording an API and replaying it."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.backends.numpy_tape import Tape


def test_a_replay_computes_what_a_fresh_run_would(generator: np.random.Generator) -> None:
    ops, tape = NumpyOps(), Tape()
    buffer, index = np.zeros((3, 4), np.float32), np.zeros(3, np.int64)

    def program(x: object, chosen: object) -> object:
        hidden = ops.relu(ops.linear(x, weight, bias))
        rows = ops.concatenate([hidden, ops.tanh(hidden)])
        best = ops.where(ops.max(rows) > 0.5, ops.pick(rows, chosen), ops.sum(rows, axis=-1))
        return best + ops.log_softmax(rows)[:, 0] * 2.0 + ops.to_float(ops.argmax(rows)) + ops.cumsum(rows)[:, -1]

    weight, bias = generator.standard_normal((4, 5)).astype(np.float32), np.ones(5, np.float32)
    recorded = program(tape.input(buffer), tape.input(index))
    for _ in range(3):
        buffer[...] = generator.standard_normal((3, 4))
        index[...] = generator.integers(0, 10, 3)
        tape.run()
        np.testing.assert_array_equal(recorded.array, program(buffer, index))  # type: ignore[attr-defined]


def test_a_reshape_of_a_slice_is_recorded_as_a_copy() -> None:
    ops, tape = NumpyOps(), Tape()
    buffer = np.zeros((2, 3), np.float32)
    doubled = ops.reshape(tape.input(buffer)[:, 1:], (4,)) * 2.0
    buffer[...] = [[0, 1, 2], [3, 4, 5]]
    tape.run()
    assert doubled.array.tolist() == [2, 4, 8, 10]


def test_no_call_allocates_its_result() -> None:
    ops, tape = NumpyOps(), Tape()
    out = ops.tanh(tape.input(np.ones(3, np.float32)))
    before = out.array
    tape.run()
    assert out.array is before
    assert len(tape) == 1


def test_what_cannot_be_recorded_is_refused_with_what_to_use() -> None:
    x = Tape().input(np.zeros((2, 2), np.float32))
    with pytest.raises(ConfigError, match="mode 'numpy' cannot record numpy.sort; use mode 'torch'"):
        np.sort(x)  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="mode 'numpy' cannot record add.outer; use mode 'torch'"):
        np.add.outer(x, x)
    with pytest.raises(ConfigError, match="may slice with ranges, whole numbers and None only; use ops.take or ops.pick"):
        x[[0, 1]]
