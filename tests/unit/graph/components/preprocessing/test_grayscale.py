"""From color to brightness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import SpaceError
from rollstream.graph import build
from rollstream.graph.component_test import component_test
from rollstream.graph.components.preprocessing import Grayscale

PIXELS = np.array([[[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [100, 200, 50]]]], np.uint8)  # [B, H, W, C]
EXPECTED = [[76.245, 149.685], [29.07, 153.0]]  # of the last: 29.9 + 117.4 + 5.7


def test_colors_are_weighed_by_how_bright_they_look(run: Callable[..., Any]) -> None:
    last = run(Grayscale(order="last"), PIXELS)
    assert last.shape == (1, 2, 2, 1)
    np.testing.assert_allclose(last[0, :, :, 0], EXPECTED, rtol=1e-6)
    first = run(Grayscale(order="first"), PIXELS.transpose(0, 3, 1, 2))
    assert first.shape == (1, 1, 2, 2)
    np.testing.assert_allclose(first[0, 0], EXPECTED, rtol=1e-6)


@pytest.mark.parametrize(("order", "shape"), [("first", (3, 4, 5)), ("last", (4, 5, 3))])
def test_all_modes_agree(order: Any, shape: tuple[int, ...]) -> None:
    component_test(Grayscale(order=order), {"output": {"x": spaces.Box(0, 255, shape, np.uint8)}}, rows=2)


def test_channels_elsewhere_are_refused_and_never_moved() -> None:
    with pytest.raises(SpaceError, match=r"Grayscale.output, argument x: needs the shape \[B, H, W, 3\], got \[2, 3, 4, 5\]"):
        build(Grayscale(order="last"), {"output": {"x": spaces.Box(0, 255, (3, 4, 5), np.uint8)}})
