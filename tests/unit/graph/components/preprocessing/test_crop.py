"""Parts of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import SpaceError
from rollstream.graph import build
from rollstream.graph.component_test import component_test
from rollstream.graph.components.preprocessing import Crop

IMAGE = np.arange(20, dtype=np.uint8).reshape(1, 4, 5)


def test_rows_and_columns_are_counted_from_the_upper_left(run: Callable[..., Any]) -> None:
    expected = [[11, 12, 13], [16, 17, 18]]
    first = run(Crop(top=2, left=1, height=2, width=3, order="first"), IMAGE[:, None])
    last = run(Crop(top=2, left=1, height=2, width=3, order="last"), IMAGE[..., None])
    assert (first[0, 0].tolist(), last[0, :, :, 0].tolist()) == (expected, expected)
    assert first.dtype == np.uint8


@pytest.mark.parametrize(("order", "shape"), [("first", (2, 4, 5)), ("last", (4, 5, 2))])
def test_all_modes_agree(order: Any, shape: tuple[int, ...]) -> None:
    crop = Crop(top=1, left=2, height=3, width=2, order=order)
    component_test(crop, {"output": {"x": spaces.Box(0, 255, shape, np.uint8)}})


def test_a_space_that_is_no_image_is_refused() -> None:
    with pytest.raises(SpaceError, match=r"Crop.output, argument x: needs the shape \[B, H, W, C\], got \[2, 6, 8\]"):
        build(Crop(top=0, left=0, height=2, width=2, order="last"), {"output": {"x": spaces.Box(-1, 1, (6, 8))}})
