"""Between [-1, 1] and the bounds of a Box."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import SpaceError
from rollstream.graph.component_test import component_test
from rollstream.graph.components.preprocessing import ActionScale
from rollstream.spaces import Leaf, leaves

(TORQUE,) = leaves(spaces.Box(np.array([-2.0, 0.0, 3.0], np.float32), np.array([2.0, 10.0, 3.0], np.float32)), "action")


def test_the_ends_and_the_middle_meet(run: Callable[..., Any]) -> None:
    scale = ActionScale(TORQUE)
    policys = np.array([[-1.0, -1.0, -1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-5.0, 5.0, 0.5]], np.float32)
    environments = [[-2.0, 0.0, 3.0], [0.0, 5.0, 3.0], [2.0, 10.0, 3.0], [-2.0, 10.0, 3.0]]
    assert run(scale, policys, api="to_environment").tolist() == environments
    back = run(scale, np.array(environments, np.float32), api="from_environment")
    assert back.tolist() == [[-1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]]


def test_all_modes_agree() -> None:
    space = {"x": spaces.Box(-1, 1, (3,))}
    component_test(ActionScale(TORQUE), {"to_environment": space, "from_environment": space})


def test_a_space_without_bounds_is_refused() -> None:
    endless = Leaf(name="action", kind="box", dtype="<f4", shape=(1,), low=(-1.0,), high=(np.inf,))
    with pytest.raises(
        SpaceError, match=r"action: ActionScale.to_environment, argument x: needs a Box with finite bounds, got box"
    ):
        ActionScale(endless)
