"""A family of tasks: move a point in the plane to a goal that is not seen (Finn et al. 2017, section 5.3, "2D navigation").

    position + velocity (each at most 0.1) ─▶ position        reward = - (distance to the goal)²        episodes of 20 steps

Which goal it is follows from the reset option `task`, a number: all copies then have the same, until another is given. Without one each
copy draws a goal of its own for every episode. The observation is the position alone, so only what was earned tells where the goal is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

__all__ = ["PointNavigation"]

Array = npt.NDArray[Any]
LARGEST_STEP = 0.1


class PointNavigation(VectorEnv[Array, Array, Any]):
    """See the module. Named as `rollstream.envs.navigation:PointNavigation`.

    Args:
        episode_steps: length of every episode; it ends by truncation.
        reach: goals are drawn from the square between -reach and reach.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, *, num_envs: int, episode_steps: int = 20, reach: float = 0.5) -> None:
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.single_action_space = spaces.Box(-LARGEST_STEP, LARGEST_STEP, (2,), np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (num_envs, 2), np.float32)
        self.action_space = spaces.Box(-LARGEST_STEP, LARGEST_STEP, (num_envs, 2), np.float32)
        self._episode_steps = episode_steps
        self._reach = reach
        self._generator = np.random.default_rng()
        self._task: int | None = None
        self._goals = np.zeros((num_envs, 2))
        self._position = np.zeros((num_envs, 2), np.float32)
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        if seed is not None:
            self._generator = np.random.default_rng(seed)
        task = (options or {}).get("task")
        self._task = self._task if task is None else int(task)
        return self._begin(), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        self._position = self._position + np.clip(actions, -LARGEST_STEP, LARGEST_STEP).astype(np.float32)
        reward = -np.square(self._position - self._goals).sum(axis=1)
        self._steps += 1
        ended = np.full(self.num_envs, self._steps >= self._episode_steps)
        never = np.zeros(self.num_envs, np.bool_)
        if not ended[0]:
            return self._position.copy(), reward, never, ended, {}
        final = self._position
        return self._begin(), reward, never, ended, {"final_obs": final, "_final_obs": ended}

    def _begin(self) -> Array:
        """All copies at the start of an episode."""
        self._steps = 0
        self._position = np.zeros((self.num_envs, 2), np.float32)
        generator, size = (self._generator, self.num_envs) if self._task is None else (np.random.default_rng(self._task), 1)
        self._goals = np.broadcast_to(generator.uniform(-self._reach, self._reach, (size, 2)), (self.num_envs, 2))
        return self._position.copy()
