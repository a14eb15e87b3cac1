"""Scale, clip and one-hot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import spaces

from rollstream.graph.component_test import component_test
from rollstream.graph.components.preprocessing import Clip, OneHot, Scale
from rollstream.spaces import Leaf

CARDS = Leaf(name="x", kind="multi_discrete", dtype="<i8", shape=(2,), counts=(2, 3), starts=(0, 5))


def test_scale_multiplies_then_adds(run: Callable[..., Any]) -> None:
    y = run(Scale(factor=1 / 255, offset=-0.5), np.array([[0, 51, 255]], np.uint8))
    np.testing.assert_allclose(y, [[-0.5, -0.3, 0.5]], atol=1e-7)
    assert y.dtype == np.float32


def test_clip_keeps_what_is_within(run: Callable[..., Any]) -> None:
    assert run(Clip(low=-1.0, high=2.0), np.array([[-7, 1, 3]])).tolist() == [[-1.0, 1.0, 2.0]]


def test_one_hot_counts_each_number_from_its_start(run: Callable[..., Any]) -> None:
    assert run(OneHot(CARDS), np.array([[1, 7], [0, 5]])).tolist() == [[0, 1, 0, 0, 1], [1, 0, 1, 0, 0]]


def test_all_modes_agree() -> None:
    for part in (Scale(factor=0.5, offset=2.0), Clip(low=-0.5, high=0.25)):
        component_test(part, {"output": {"x": spaces.Box(-1, 1, (2, 3))}})
    component_test(OneHot(replace(CARDS, starts=(0, 1))), {"output": {"x": spaces.MultiDiscrete([2, 3], start=[0, 1])}})
