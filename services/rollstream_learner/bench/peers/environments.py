"""An environment for measurements of everything around it: it takes its time without using a core."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rollstream.clock import SystemClock

__all__ = ["SleepingEnvironment"]

EPISODE_STEPS = 200


class SleepingEnvironment(gymnasium.Env[Any, Any]):
    """Each step sleeps for `step_s`; observations are as many numbers as CartPole's. Episodes of 200 steps."""

    def __init__(self, *, step_s: float = 0.005) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (4,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._step_s = step_s
        self._steps = 0
        self._clock = SystemClock()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._step_s:
            self._clock.sleep(self._step_s)
        self._steps += 1
        return self._observe(), 1.0, False, self._steps >= EPISODE_STEPS, {}

    def _observe(self) -> Any:
        return np.full(4, self._steps / EPISODE_STEPS, np.float32)
