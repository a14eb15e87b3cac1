"""First values of parameters."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.graph.initializers import Blocks, Constant, Normal, Orthogonal


@pytest.mark.parametrize("shape", [(8, 3), (3, 8), (5, 5)])
def test_orthogonal_vectors_have_the_gain_as_norm(shape: tuple[int, int], generator: np.random.Generator) -> None:
    matrix = Orthogonal(gain=2.0).make(shape, generator).astype(np.float64)
    few = matrix.T @ matrix if shape[0] >= shape[1] else matrix @ matrix.T
    np.testing.assert_allclose(few, 4.0 * np.eye(min(shape)), atol=1e-5)
    assert matrix.shape == shape


def test_constants_are_constant(generator: np.random.Generator) -> None:
    assert Constant(value=2.0).make((3,), generator).tolist() == [2.0, 2.0, 2.0]


def test_normal_numbers_have_the_deviation(generator: np.random.Generator) -> None:
    numbers = Normal(deviation=2.0).make((4000,), generator)
    assert abs(numbers.std() - 2.0) < 0.1
    assert abs(numbers.mean()) < 0.1


def test_blocks_are_made_one_by_one_along_the_last_axis(generator: np.random.Generator) -> None:
    made = Blocks((Constant(value=1.0), Constant(value=2.0))).make((2, 4), generator)
    assert made.tolist() == [[1.0, 1.0, 2.0, 2.0]] * 2
