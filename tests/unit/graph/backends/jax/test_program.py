"""Programs: buffers that XLA reads in place, and calls that fit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax")

from rollstream.clock import SystemClock
from rollstream.graph.backends.jax.program import ALIGNMENT_BYTES, aligned_zeros, compile_program


@pytest.mark.parametrize(("shape", "dtype"), [((3, 5), "<f4"), ((), "<i8"), ((7,), "|u1")])
def test_buffers_begin_where_xla_reads_them_in_place(shape: tuple[int, ...], dtype: str) -> None:
    kept = [aligned_zeros(shape, dtype) for _ in range(20)]
    for buffer in kept:
        assert (buffer.shape, buffer.dtype) == (shape, np.dtype(dtype))
        assert not buffer.any()
        assert buffer.ctypes.data % ALIGNMENT_BYTES == 0
        buffer[...] = 1


def test_what_a_program_gave_stays_when_its_inputs_change() -> None:
    x = aligned_zeros((4,), "<f4")
    program = compile_program(lambda x: (x, x + 1), [x], what="test", clock=SystemClock())
    kept = [np.asarray(part) for part in program(x)]
    x[:] = 5
    assert [part.tolist() for part in kept] == [[0.0] * 4, [1.0] * 4]
    assert [np.asarray(part).tolist() for part in program(x)] == [[5.0] * 4, [6.0] * 4]


def test_arrays_of_another_shape_are_refused_and_not_compiled_for() -> None:
    program = compile_program(lambda x: x + 1, [np.zeros(3, np.float32)], what="test", clock=SystemClock())
    with pytest.raises(TypeError, match="compiled"):
        program(np.zeros(4, np.float32))
