"""Images of another size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import SpaceError
from rollstream.graph import build
from rollstream.graph.component_test import component_test
from rollstream.graph.components.preprocessing import Resize
from rollstream.graph.components.preprocessing.resize import resize_matrix


def test_area_weighs_pixels_by_how_much_of_them_is_covered() -> None:
    thirds = [[2 / 3, 1 / 3, 0.0], [0.0, 1 / 3, 2 / 3]]
    np.testing.assert_allclose(resize_matrix(3, 2, "area"), thirds, rtol=1e-6)
    np.testing.assert_allclose(resize_matrix(4, 2, "area"), [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])


def test_bilinear_reads_between_pixel_centres() -> None:
    # centres of 4 new pixels in 2 old ones: -0.25 (the edge), 0.25, 0.75, 1.25 (the edge)
    np.testing.assert_allclose(resize_matrix(2, 4, "bilinear"), [[1.0, 0.0], [0.75, 0.25], [0.25, 0.75], [0.0, 1.0]])


@pytest.mark.parametrize("method", ["area", "bilinear"])
@pytest.mark.parametrize(("size", "new_size"), [(210, 84), (160, 84), (84, 210), (7, 3), (5, 5)])
def test_a_constant_image_stays_as_it_is(size: int, new_size: int, method: Any) -> None:
    np.testing.assert_allclose(resize_matrix(size, new_size, method).sum(axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "size"),
    [("bilinear", (84, 84)), ("bilinear", (300, 170)), ("bilinear", (105, 80)), ("area", (105, 80)), ("area", (42, 32))],
)
def test_it_is_torchs_interpolation(run: Callable[..., Any], generator: np.random.Generator, method: Any, size: Any) -> None:
    torch = pytest.importorskip("torch")
    x = generator.uniform(0, 255, (2, 3, 210, 160)).astype(np.float32)
    settings = {} if method == "area" else {"align_corners": False}
    expected = torch.nn.functional.interpolate(torch.from_numpy(x).double(), size=size, mode=method, **settings).numpy()
    first = run(Resize(height=size[0], width=size[1], method=method, order="first"), x)
    np.testing.assert_allclose(first, expected, atol=2e-3)  # of 255, in float32
    last = run(Resize(height=size[0], width=size[1], method=method, order="last"), x.transpose(0, 2, 3, 1))
    np.testing.assert_allclose(last, expected.transpose(0, 2, 3, 1), atol=2e-3)


@pytest.mark.parametrize(("order", "shape"), [("first", (2, 4, 5)), ("last", (4, 5, 2))])
@pytest.mark.parametrize("method", ["area", "bilinear"])
def test_all_modes_agree(order: Any, shape: tuple[int, ...], method: Any) -> None:
    space = {"output": {"x": spaces.Box(0, 255, shape, np.uint8)}}
    component_test(Resize(height=3, width=7, order=order, method=method), space, rows=2)


def test_a_space_that_is_no_image_is_refused() -> None:
    with pytest.raises(SpaceError, match=r"Resize.output, argument x: needs the shape \[B, C, H, W\], got \[2, 6, 8\]"):
        build(Resize(height=2, width=2, order="first"), {"output": {"x": spaces.Box(-1, 1, (6, 8))}})
