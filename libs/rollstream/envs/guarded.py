"""A thin wrapper around each copy that Gymnasium's own vectorizers step.

It does what they leave out: checks each observation against the declared space (they would broadcast it, or fail without naming
the key), passes reset options at automatic resets too, and copies final observations, which they keep by reference across a
reset.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from rollstream.spaces import SpaceLayout

__all__ = ["GuardedEnvironment"]


class GuardedEnvironment(gymnasium.Wrapper[Any, Any, Any, Any]):
    """`environment` with checked observations, lasting reset options and final observations of their own."""

    def __init__(self, environment: gymnasium.Env[Any, Any], *, options: Mapping[str, Any]) -> None:
        super().__init__(environment)
        self._options = dict(options)
        self._layout = SpaceLayout(environment.observation_space, "observation")
        space = environment.observation_space
        self._plain = (space.shape, space.dtype) if isinstance(space, gymnasium.spaces.Box) else None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options or dict(self._options) or None)
        self._check(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._check(observation)
        if terminated or truncated:
            observation = observation.copy() if type(observation) is np.ndarray else copy.deepcopy(observation)
        return observation, reward, terminated, truncated, info

    def _check(self, observation: Any) -> None:
        """Refuse what does not have the form of the space; an array that fits a plain Box is seen to in a fraction of the time."""
        if type(observation) is not np.ndarray or (observation.shape, observation.dtype) != self._plain:
            self._layout.read_each([observation])
