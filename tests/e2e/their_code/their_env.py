"""A user's environments: one that fails where it is told to, one with spaces that cannot be stored."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Broken(gymnasium.Env[Any, Any]):
    """Fails at `fault`, steps at the fifth one.

    `constructor`, `constructor_in_an_actor`, `reset`, `step`, `step_in_the_learner` (which evaluates), `nan`, `once`.
    """

    def __init__(self, *, fault: str, marker: str = "") -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (4,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._fault = fault
        self._marker = Path(marker)
        self._steps = 0
        if fault == "constructor" or (fault == "constructor_in_an_actor" and "rollstream_actor" in sys.orig_argv):
            raise RuntimeError("no license for the simulator")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if self._fault == "reset":
            raise RuntimeError("cannot start the simulator")
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        reward = 1.0
        if self._steps == 5:
            reward = self._misbehave()
        return self._observe(), reward, self._steps % 20 == 0, False, {}

    def _observe(self) -> Any:
        return np.zeros(4, np.float32)

    def _misbehave(self) -> float:
        if self._fault == "step" or (self._fault == "step_in_the_learner" and "rollstream_learner" in sys.orig_argv):
            raise RuntimeError("the simulator broke")
        if self._fault == "once" and not self._marker.exists():
            self._marker.write_text(str(os.getpid()))
            raise RuntimeError("the simulator hiccuped")
        return float("nan") if self._fault == "nan" else 1.0


class Reading(gymnasium.Env[Any, Any]):
    """Observes text, which has no fixed size."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict({"text": spaces.Text(9)})
        self.action_space = spaces.Discrete(2)
