"""The residual network for images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from rollstream.graph import declare
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Impala
from rollstream.graph.spaced import with_spaces


def test_it_has_the_size_of_the_deep_network_of_the_paper() -> None:
    layout = declare(with_spaces(Impala(), {"output": {"x": spaces.Box(0, 1, (4, 84, 84))}})).layout
    convolution = {(i, o): 9 * i * o + o for i, o in ((4, 16), (16, 16), (16, 32), (32, 32))}
    sections = convolution[4, 16] + 4 * convolution[16, 16] + convolution[16, 32] + 9 * convolution[32, 32]
    assert layout.size == sections + (11 * 11 * 32 + 1) * 256  # 84 -> 42 -> 21 -> 11


def test_blocks_add_to_what_they_are_given(run: Callable[..., Any]) -> None:
    tiny = Impala(sections=(1,), units=1)
    one, zero = np.zeros((1, 1, 3, 3)), np.zeros((1, 1, 3, 3))
    one[0, 0, 1, 1] = 1.0  # passes the image through
    parameters = {"dense.weight": np.ones((4, 1)), "dense.bias": [0.0]}
    for name, kernel in (("conv", one), ("block0_0", one), ("block0_1", one), ("block1_0", one), ("block1_1", zero)):
        parameters |= {f"section0.{name}.weight": kernel, f"section0.{name}.bias": [0.0]}
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    # maxima of windows 3x3 every 2: 10, 11, 14, 15; block 0 doubles them, block 1 adds nothing
    assert run(tiny, x, parameters=parameters).tolist() == [[2 * (10 + 11 + 14 + 15)]]


def test_all_modes_agree() -> None:
    component_test(Impala(sections=(2, 3), units=4), {"output": {"x": spaces.Box(-1, 1, (2, 6, 5))}}, rows=2)


def test_every_image_has_a_pixel_left() -> None:
    assert Impala().fits(1, 1)
