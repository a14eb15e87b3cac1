"""Where the channels of an image are."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import SpaceError
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.components.image import channels_first, image_order, is_image
from rollstream.spaces import Leaf


def leaf(*shape: int, kind: str = "box") -> Leaf:
    return Leaf(name="observation.camera", kind=kind, dtype="|u1", shape=shape)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "order"),
    [((3, 84, 96), "first"), ((84, 96, 3), "last"), ((12, 64, 64), "first"), ((10, 10, 4), "last"), ((84, 84, 1), "last")],
)
def test_auto_takes_the_axis_that_is_clearly_shorter(shape: tuple[int, ...], order: str) -> None:
    assert image_order(leaf(*shape), "auto") == order


@pytest.mark.parametrize("shape", [(3, 5, 3), (5, 3, 5), (10, 10, 7), (8, 8, 112), (3, 4, 5)])
def test_auto_refuses_what_could_be_both_and_a_setting_decides(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        SpaceError, match="^observation.camera: an image of shape .* may have its channels first or last; say which"
    ):
        image_order(leaf(*shape), "auto")
    assert image_order(leaf(*shape), "first") == "first"
    assert image_order(leaf(*shape), "last") == "last"


def test_images_are_boxes_of_three_axes() -> None:
    assert is_image(leaf(3, 4, 5))
    assert not is_image(leaf(4, 5))
    assert not is_image(leaf(3, 4, 5, kind="multi_binary"))


def test_the_channel_axis_is_moved_and_the_image_not_mirrored() -> None:
    x = np.arange(24).reshape(1, 2, 4, 3)  # [B, H, W, C]
    y = channels_first(NumpyOps(), x, "last")
    assert y.shape == (1, 3, 2, 4)
    assert y[0, 1, 0, 2] == x[0, 0, 2, 1]
    assert channels_first(NumpyOps(), x, "first") is x
