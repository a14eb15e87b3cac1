"""An environment of one's own: a corridor with the goal at its right end.

cd docs/examples
rollstream train ppo --env corridor:Corridor --stop-return 0.9
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

LEFT, RIGHT = 0, 1


class Corridor(gymnasium.Env[np.ndarray, int]):
    """Walk to the right end: +1 there, -0.01 for every step."""

    def __init__(self, length: int = 10) -> None:
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self._length = length
        self._place = self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = self._steps = 0
        return self._observation(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._place = max(0, self._place + (1 if action == RIGHT else -1))
        self._steps += 1
        arrived = self._place == self._length
        return self._observation(), 1.0 if arrived else -0.01, arrived, self._steps >= 200, {}

    def _observation(self) -> np.ndarray:
        return np.array([self._place / self._length], np.float32)
