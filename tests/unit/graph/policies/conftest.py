"""Spaces, and policies with parameters that are not those of a beginner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rollstream.acting import Policy
from rollstream.graph import Acting, build_acting
from rollstream.graph.memory import Memory
from rollstream.graph.reference import reference
from rollstream.spaces import Columns

ACTIONS: Mapping[str, gymnasium.Space[Any]] = {
    "discrete": spaces.Discrete(3),
    "discrete from -1": spaces.Discrete(4, start=-1),
    "multi-discrete": spaces.MultiDiscrete([2, 3, 4]),
    "multi-discrete 2-D": spaces.MultiDiscrete(np.array([[2, 3], [4, 1]])),
    "multi-discrete with starts": spaces.MultiDiscrete([3, 3], start=[-1, 1]),
    "multi-binary": spaces.MultiBinary(4),
    "multi-binary 2-D": spaces.MultiBinary((2, 2)),
    "box": spaces.Box(np.array([-2.0, 0.1], np.float32), np.array([3.0, 0.3], np.float32)),
    "box 2-D": spaces.Box(-0.1, 0.7, (2, 3)),
    "box without axes": spaces.Box(-2.0, 2.0, ()),
    "box float64": spaces.Box(-0.1, 0.1, (2,), np.float64),
    "box of bytes": spaces.Box(0, 5, (2,), np.uint8),
    "box without bounds": spaces.Box(-np.inf, np.inf, (2, 2)),
    "nested": spaces.Dict(
        {"a": spaces.Discrete(3, start=1), "b": spaces.Tuple((spaces.Box(-1.0, 5.0, (2,)), spaces.MultiBinary(2)))}
    ),
}


@pytest.fixture(params=sorted(ACTIONS))
def actions(request: pytest.FixtureRequest) -> gymnasium.Space[Any]:
    """Every kind of action space in turn."""
    return ACTIONS[request.param]


@pytest.fixture
def nested() -> gymnasium.Space[Any]:
    """A Dict with a Tuple inside."""
    return ACTIONS["nested"]


class Trained:
    """A policy with random parameters, of scale `scale`; acts in `rows` environments."""

    def __init__(self, component: Any, *, rows: int = 200, scale: float = 0.5, seed: int = 0) -> None:
        self.component = component
        self.generator = np.random.default_rng(seed)
        self.acting: Acting = build_acting(component, batch=rows, mode="numpy")
        size = self.acting.layout.size
        self.flat = self.acting.layout.init(seed) + self.generator.normal(0, scale, size).astype(np.float32)
        self.acting.load(self.flat)
        self.policy = Policy(
            acting=self.acting, actions=component.actions, extra=component.extra_columns, generator=self.generator
        )

    def reference(self, api: str, inputs: Columns) -> Any:
        """What the API gives in the reference mode."""
        return reference(self.component, api=api, memory=Memory(layout=self.acting.layout, flat=self.flat), inputs=inputs)


@pytest.fixture
def trained() -> Callable[..., Trained]:
    """Makes one."""
    return Trained
