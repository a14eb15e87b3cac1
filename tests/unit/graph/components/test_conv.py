"""Convolutions and how wide their results are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import SpaceError
from rollstream.graph import build
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Conv
from rollstream.graph.components.conv import same_widths, windows

IMAGE = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
PARAMETERS = {"weight": [[[[1.0, 0.0], [0.0, 10.0]]]], "bias": [0.5]}


def test_each_window_is_weighed(run: Callable[..., Any]) -> None:
    y = run(Conv(features=1, kernel=2), IMAGE, parameters=PARAMETERS)
    # 0 + 10 * 4, 1 + 10 * 5; 3 + 10 * 7, 4 + 10 * 8
    assert y[0, 0].tolist() == [[40.5, 51.5], [73.5, 84.5]]


def test_same_padding_keeps_the_size_and_adds_the_odd_zero_after(run: Callable[..., Any]) -> None:
    y = run(Conv(features=1, kernel=2, padding="same"), IMAGE, parameters=PARAMETERS)
    assert y[0, 0].tolist() == [[40.5, 51.5, 2.5], [73.5, 84.5, 5.5], [6.5, 7.5, 8.5]]


@pytest.mark.parametrize(("size", "kernel", "stride", "count"), [(84, 8, 4, 20), (20, 4, 2, 9), (3, 4, 1, 0)])
def test_how_many_windows_fit(size: int, kernel: int, stride: int, count: int) -> None:
    assert windows(size, kernel=kernel, stride=stride, padding="valid") == count


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "count", "widths"), [(84, 3, 2, 42, (0, 1)), (5, 3, 1, 5, (1, 1)), (4, 1, 2, 2, (0, 0))]
)
def test_how_many_fit_with_same_padding(size: int, kernel: int, stride: int, count: int, widths: tuple[int, int]) -> None:
    assert windows(size, kernel=kernel, stride=stride, padding="same") == count
    assert same_widths(size, kernel=kernel, stride=stride) == widths


@pytest.mark.parametrize("padding", ["valid", "same"])
def test_all_modes_agree(padding: Any) -> None:
    conv = Conv(features=3, kernel=3, stride=2, padding=padding, activation="tanh")
    component_test(conv, {"output": {"x": spaces.Box(-1, 1, (2, 6, 8))}}, rows=2)


def test_a_space_that_is_no_image_is_refused() -> None:
    with pytest.raises(SpaceError, match=r"Conv.output, argument x: needs the shape \[B, C, H, W\], got \[2, 6, 8\]"):
        build(Conv(features=3, kernel=3), {"output": {"x": spaces.Box(-1, 1, (6, 8))}})
