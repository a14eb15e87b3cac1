"""Maxima over windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import SpaceError
from rollstream.graph import build
from rollstream.graph.component_test import component_test
from rollstream.graph.components import MaxPool

IMAGE = -np.array([[9.0, 2.0, 3.0, 8.0], [5.0, 6.0, 7.0, 4.0], [1.0, 9.0, 9.0, 5.0]], np.float32)[None, None]


def test_the_highest_of_each_window_stays(run: Callable[..., Any]) -> None:
    assert run(MaxPool(kernel=2, stride=2), IMAGE)[0, 0].tolist() == [[-2.0, -3.0]]
    assert run(MaxPool(kernel=2, stride=1), IMAGE)[0, 0].tolist() == [[-2.0, -2.0, -3.0], [-1.0, -6.0, -4.0]]


def test_what_is_outside_of_the_image_never_wins_even_over_negative_numbers(run: Callable[..., Any]) -> None:
    y = run(MaxPool(kernel=3, stride=2, padding="same"), IMAGE)
    # rows padded 1 before and 1 after, columns 0 before and 1 after
    assert y[0, 0].tolist() == [[-2.0, -3.0], [-1.0, -4.0]]


def test_it_is_torchs_max_pool(run: Callable[..., Any], generator: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    x = generator.normal(size=(2, 3, 7, 9)).astype(np.float32)
    y = run(MaxPool(kernel=3, stride=2, padding="same"), x)
    expected = torch.nn.functional.max_pool2d(torch.from_numpy(x), 3, 2, 1).numpy()
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("padding", ["valid", "same"])
def test_all_modes_agree(padding: Any) -> None:
    component_test(MaxPool(kernel=3, stride=2, padding=padding), {"output": {"x": spaces.Box(-1, 1, (2, 6, 7))}})


def test_a_space_that_is_no_image_is_refused() -> None:
    with pytest.raises(SpaceError, match=r"MaxPool.output, argument x: needs the shape \[B, C, H, W\]"):
        build(MaxPool(kernel=2, stride=2), {"output": {"x": spaces.Box(-1, 1, (6, 8))}})
