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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_python_take_the_dtype_of_the_array_that_they_meet(dtype: type) -> None:
    x = Tape(dtype=dtype).input(np.full((2, 2), 0.5, dtype))
    for y in (x * 2.0, 1 - x, x / 3, x**2, x**-1.5, -x, abs(x), np.float32(2) * x, x[0, 0] * 2.0, x[0, 0] + 1, x > 0.25):
        assert y.dtype == (np.bool_ if y.dtype == np.bool_ else dtype)
    assert NumpyOps(dtype=dtype).mean(x).dtype == dtype


def test_integers_stay_integers_until_they_meet_a_fraction() -> None:
    tape = Tape()
    index, pixels = tape.input(np.arange(3)), tape.input(np.array([0, 128, 255], np.uint8))
    assert (index * 2 + 1).dtype == np.int64
    assert (index * 0.5).dtype == (index / 2).dtype == (pixels / 255.0).dtype == (pixels * 0.5).dtype == np.float32
    half, bright = index / 2, pixels / 255.0
    index.array[...] = [4, 5, 6]
    pixels.array[...] = [255, 0, 51]
    tape.run()
    np.testing.assert_allclose(half.array, [2.0, 2.5, 3.0])
    np.testing.assert_allclose(bright.array, [1.0, 0.0, 0.2])


def test_slices_with_whole_numbers_look_at_the_same_memory() -> None:
    buffer = np.zeros((2, 3), np.float32)
    x = Tape().input(buffer)
    views = [x[1, 2], x[1], x[..., -1], x[None, 0, ::2], x[:, np.int64(1)]]
    buffer[...] = [[0, 1, 2], [3, 4, 5]]
    assert [view.array.tolist() for view in views] == [5, [3, 4, 5], [2, 5], [[0, 2]], [1, 4]]
    assert len(x) == 2


def test_an_array_cannot_steer_the_program() -> None:
    x = Tape().input(np.ones((), np.float32))
    with pytest.raises(ConfigError, match="cannot branch on what an array contains.*use ops.where"):
        bool(x > 0)
    with pytest.raises(ConfigError, match="cannot take a number out of an array"):
        float(x)


def test_what_depends_on_parameters_only_is_computed_at_each_run() -> None:
    tape, scale = Tape(), np.zeros(2, np.float32)
    doubled = NumpyOps().exp(tape.input(scale)) * 2.0
    scale[...] = np.log([1.0, 3.0])
    tape.run()
    np.testing.assert_allclose(doubled.array, [2.0, 6.0], rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 4), (1, 1), (3, 1), (4,), ()])
def test_operands_that_fit_without_broadcasting_give_the_same(shape: tuple[int, ...], generator: np.random.Generator) -> None:
    tape, one, other = Tape(), np.zeros((1, 4), np.float32), np.zeros(shape, np.float32)
    found = tape.input(one) * tape.input(other) - tape.input(other)
    one[...], other[...] = generator.standard_normal(one.shape), generator.standard_normal(shape)
    tape.run()
    np.testing.assert_array_equal(found.array, one * other - other)


def test_a_padded_border_stays_zero_and_nothing_is_made_at_replay(generator: np.random.Generator) -> None:
    tape, buffer = Tape(), np.ones((2, 3), np.float32)
    padded = NumpyOps().pad(tape.input(buffer), ((1, 0), (0, 2)))
    buffer[...] = generator.standard_normal((2, 3))
    tape.run()
    assert len(tape) == 1
    np.testing.assert_array_equal(padded.array, np.pad(buffer, ((1, 0), (0, 2))))


@pytest.mark.parametrize("channels_last", [False, True])
def test_convolutions_see_images_in_either_layout(channels_last: bool, generator: np.random.Generator) -> None:
    """Of ones by ones: each output is the number of entries a kernel covers."""
    tape, ops = Tape(), NumpyOps()
    buffer = np.zeros((2, 5, 6, 3) if channels_last else (2, 3, 5, 6), np.uint8)
    x = tape.input(buffer)
    image = ops.transpose(x, (0, 3, 1, 2)) if channels_last else x
    found = ops.conv(ops.to_float(image), np.ones((4, 3, 2, 2), np.float32), np.arange(4, dtype=np.float32), stride=2)
    buffer[...] = 1
    tape.run()
    assert found.shape == (2, 4, 2, 3)
    np.testing.assert_array_equal(found.array, np.broadcast_to(12.0 + np.arange(4.0)[:, None, None], (2, 4, 2, 3)))
