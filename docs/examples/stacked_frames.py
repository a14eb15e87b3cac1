"""An environment whose frames are stacked before a policy sees them: actors, evaluation, `/act` and exports take the stack.

cd docs/examples
rollstream train ppo --env stacked_frames:make --set convolutions=atari --set channels=first --stop-steps 100000
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import FrameStackObservation

SIDE, STEPS = 24, 32


class Mover(gymnasium.Env[Any, Any]):
    """A bar moves left or right; action 1 says right. One frame does not show where it goes, two do."""

    observation_space = Box(0, 255, (SIDE, SIDE), np.uint8)
    action_space = Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place, self._right, self._step = int(self.np_random.integers(SIDE)), int(self.np_random.integers(2)), 0
        return self._frame(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float(int(action) == self._right)
        self._place = (self._place + (1 if self._right else -1)) % SIDE
        self._step += 1
        return self._frame(), reward, self._step == STEPS, False, {}

    def _frame(self) -> Any:
        frame = np.zeros((SIDE, SIDE), np.uint8)
        frame[:, self._place] = 255
        return frame


def make() -> gymnasium.Env[Any, Any]:
    """[4, 24, 24]: the newest frame last."""
    return FrameStackObservation(Mover(), 4)
