"""Convolutional networks."""

from __future__ import annotations

import pytest
from gymnasium import spaces

from rollstream.graph import declare
from rollstream.graph.component_test import component_test
from rollstream.graph.components import ATARI, NATURE, Cnn, Conv
from rollstream.graph.spaced import with_spaces


def test_the_network_of_nature_has_its_published_size() -> None:
    layout = declare(with_spaces(NATURE, {"output": {"x": spaces.Box(0, 1, (4, 84, 84))}})).layout
    # (8*8*4 + 1) * 32 + (4*4*32 + 1) * 64 + (3*3*64 + 1) * 64 + (7*7*64 + 1) * 512
    assert layout.size == 8224 + 32832 + 36928 + 1606144


def test_the_smaller_one_reads_an_atari_frame() -> None:
    layout = declare(with_spaces(ATARI, {"output": {"x": spaces.Box(0, 1, (4, 84, 84))}})).layout
    # (8*8*4 + 1) * 16 + (4*4*16 + 1) * 32 + (9*9*32 + 1) * 256
    assert layout.size == 4112 + 8224 + 663808


@pytest.mark.parametrize(("height", "width", "fits"), [(36, 36, True), (35, 36, False), (36, 35, False), (210, 160, True)])
def test_it_knows_which_images_are_too_small(height: int, width: int, fits: bool) -> None:
    assert NATURE.fits(height, width) is fits  # 36 -> 8 -> 3 -> 1, 35 -> 7 -> 2 -> 0


def test_all_modes_agree() -> None:
    small = Cnn(layers=(Conv(features=2, kernel=3, stride=2, activation="relu"), Conv(features=3, kernel=2)), units=4)
    component_test(small, {"output": {"x": spaces.Box(-1, 1, (2, 9, 7))}}, rows=2)
