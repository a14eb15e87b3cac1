"""Environments for measurements of everything around them: one that takes its time without using a core, and one that breaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rollstream.clock import SystemClock

__all__ = ["BreakingEnvironment", "SleepingEnvironment"]

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


class BreakingEnvironment(SleepingEnvironment):
    """Does not sleep, and raises in step `at_step`; before that it writes the wall time to the file `told`."""

    def __init__(self, *, told: str, at_step: int = 2_000) -> None:
        super().__init__(step_s=0.0)
        self._told = Path(told)
        self._left = at_step

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._left -= 1
        if self._left <= 0:
            if not self._told.exists():
                self._told.write_text(repr(self._clock.wall_s()))
            raise RuntimeError("the simulator broke")
        return super().step(action)
