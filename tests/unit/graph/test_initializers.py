"""First values of parameters."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.graph.initializers import Constant, Orthogonal


@pytest.mark.parametrize("shape", [(8, 3), (3, 8), (5, 5)])
def test_orthogonal_vectors_have_the_gain_as_norm(shape: tuple[int, int], generator: np.random.Generator) -> None:
    matrix = Orthogonal(gain=2.0).make(shape, generator).astype(np.float64)
    few = matrix.T @ matrix if shape[0] >= shape[1] else matrix @ matrix.T
    np.testing.assert_allclose(few, 4.0 * np.eye(min(shape)), atol=1e-5)
    assert matrix.shape == shape


def test_constants_are_constant(generator: np.random.Generator) -> None:
    assert Constant(value=2.0).make((3,), generator).tolist() == [2.0, 2.0, 2.0]
