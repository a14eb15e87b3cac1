"""Values on a compressed scale."""

from __future__ import annotations

import numpy as np

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.losses.rescaling import compressed, expanded

OPS = NumpyOps()


def test_numbers_worked_by_hand() -> None:
    # sqrt(8 + 1) - 1 + 0.001 * 8; odd
    np.testing.assert_allclose(compressed(OPS, np.array([8.0, -8.0, 0.0])), [2.008, -2.008, 0.0])
    np.testing.assert_allclose(expanded(OPS, np.array([2.008, -2.008, 0.0])), [8.0, -8.0, 0.0])


def test_one_is_the_inverse_of_the_other_in_float32_from_small_to_large() -> None:
    size = np.logspace(-4, 6, 200).astype(np.float32)
    x = np.concatenate([-size, np.zeros(1, np.float32), size])
    np.testing.assert_allclose(expanded(OPS, compressed(OPS, x)), x, rtol=5e-6, atol=1e-7)
    assert (np.diff(compressed(OPS, np.sort(x))) > 0).all()
