"""A task that needs memory: what was seen in the first step decides which action is right in the last one.

    step          0         1 ... steps - 2     steps - 1
    observation   cue, 0    0, share done       0, share done
    reward        0         0                   1 when the action matches the cue, else 0

Without memory every policy earns 0.5 on average.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

__all__ = ["MemoryChain"]

Array = npt.NDArray[Any]


class MemoryChain(VectorEnv[Array, Array, Any]):
    """See the module. Named as `rollstream.envs.memory_chain:MemoryChain`. Episodes end by termination, all copies at once.

    Args:
        steps: length of every episode.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, *, num_envs: int, steps: int = 10) -> None:
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = spaces.Box(-1.0, 1.0, (num_envs, 2), np.float32)
        self.action_space = spaces.MultiDiscrete([2] * num_envs)
        self._steps = steps
        self._generator = np.random.default_rng()
        self._cue = np.zeros(num_envs)
        self._step = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        if seed is not None:
            self._generator = np.random.default_rng(seed)
        return self._begin(), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        self._step += 1
        over = np.full(self.num_envs, self._step == self._steps)
        never = np.zeros(self.num_envs, np.bool_)
        reward = ((np.asarray(actions) * 2 - 1 == self._cue) & over).astype(np.float64)
        if not over[0]:
            return self._seen(), reward, over, never, {}
        final = self._seen()
        return self._begin(), reward, over, never, {"final_obs": final, "_final_obs": over}

    def _begin(self) -> Array:
        """All copies at the start of an episode."""
        self._step = 0
        self._cue = self._generator.choice([-1.0, 1.0], self.num_envs)
        return self._seen()

    def _seen(self) -> Array:
        cue = self._cue if self._step == 0 else np.zeros(self.num_envs)
        return np.stack([cue, np.full(self.num_envs, self._step / self._steps)], axis=1).astype(np.float32)
