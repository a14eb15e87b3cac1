"""O33 and O41: nested observations, and MultiDiscrete ones of any shape, are learned from, not only stored."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rollstream.algorithms import make_agent
from rollstream.graph import build_acting
from rollstream.spaces import Batch, leaves

ROWS = 8
OBSERVATIONS: dict[str, gymnasium.Space[Any]] = {
    "nested": spaces.Dict(
        {
            "arm": spaces.Tuple((spaces.Box(-1.0, 1.0, (2,)), spaces.Discrete(3, start=1))),
            "camera": spaces.Box(0, 255, (36, 36, 3), np.uint8),
        }
    ),
    "multi-discrete 2-D": spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])),
    "multi-binary 2-D": spaces.MultiBinary((2, 3)),
    "box float64": spaces.Box(-np.inf, np.inf, (3,), np.float64),
}


def columns(space: gymnasium.Space[Any], name: str) -> dict[str, Any]:
    """Random values of a space."""
    found: dict[str, Any] = {}
    children: Any = {}
    if isinstance(space, spaces.Dict):
        children = space.spaces
    elif isinstance(space, spaces.Tuple):
        children = dict(enumerate(space.spaces))
    for key, child in children.items():
        found |= columns(child, f"{name}.{key}")
    return found or {name: np.stack([space.sample() for _ in range(ROWS)])}


@pytest.mark.parametrize(("name", "convolutions"), [*((name, None) for name in sorted(OBSERVATIONS)), ("nested", "nature")])
def test_ppo_acts_on_and_learns_from_it(name: str, convolutions: str | None) -> None:
    space = OBSERVATIONS[name]
    actions = leaves(spaces.MultiDiscrete(np.array([[2, 3]])), "action")
    settings = {"batch_rows": ROWS, "epochs": 1, "hidden": [8], "convolutions": convolutions}
    agent = make_agent("ppo", settings, observation=leaves(space, "observation"), actions=actions)
    learning = agent.learning(seed=0)
    acting = build_acting(agent.policy, batch=ROWS)
    acting.load_tensors(learning.tensors(env_steps=0))
    observation = columns(space, "observation")
    drawn = acting.act(observation, np.random.default_rng(0))
    more = {"advantage": np.linspace(-1, 1, ROWS, dtype=np.float32), "return": np.ones(ROWS, np.float32)}
    batch = Batch(columns={**observation, **drawn, **more}, env_steps=ROWS, version=1, newest_version=1)
    metrics = learning.learn(batch, env_steps=0).metrics
    assert metrics["updates"] == 1
    assert metrics["skipped_updates"] == 0
    assert abs(metrics["approximate_kl"]) < 1e-5
