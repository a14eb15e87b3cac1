"""Small deterministic environments whose every row is known in advance: for tests, examples and first steps.

They are named like any user's environment, by entry point: `rollstream.envs.toy:CountingEnvironment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

__all__ = ["CountingEnvironment", "CountingVector", "NestedEnvironment", "PickEnvironment", "build_small_vector"]

IntArray = npt.NDArray[np.int64]


class CountingEnvironment(gymnasium.Env[IntArray, np.int64]):
    """Observations count: [seed of the first reset, episode, step]; the reward is 100 * episode + 10 * step + action.

    Args:
        lengths: lengths of the episodes in environment steps, repeated for ever.
        end: how episodes end: `terminated`, `truncated`, or `both` at once.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, *, lengths: Sequence[int] = (1, 3, 5), end: str = "terminated") -> None:
        self.observation_space = spaces.Box(0, 1 << 40, (3,), np.int64)
        self.action_space = spaces.Discrete(4)
        self._lengths = tuple(lengths)
        self._end = end
        self._state = np.array([0, -1, 0], np.int64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[IntArray, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._state[:] = (seed, -1, 0)
        self._state[1:] = (self._state[1] + 1, 0)
        return self._state, {}  # the same buffer every time, as simulators do

    def step(self, action: np.int64) -> tuple[IntArray, float, bool, bool, dict[str, Any]]:
        reward = 100.0 * self._state[1] + 10.0 * self._state[2] + float(action)
        self._state[2] += 1
        done = bool(self._state[2] >= self._lengths[self._state[1] % len(self._lengths)])
        terminated, truncated = done and self._end != "truncated", done and self._end != "terminated"
        return self._state, reward, terminated, truncated, {}


class CountingVector(VectorEnv[IntArray, IntArray, Any]):
    """`CountingEnvironment` as a vector environment of its own, whose copies carry their index instead of a seed.

    Args:
        mode: autoreset mode, a value of Gymnasium's `AutoresetMode`.
        declared: what stands in `metadata["autoreset_mode"]`; empty: nothing; `mode`: the truth.
        faulty: `no_final` leaves out final observations in mode SameStep, `one_row` returns the observation of one copy
            alone, `integer_flags` returns numbers where truth values belong.
    """

    def __init__(
        self,
        *,
        num_envs: int,
        mode: str = "NextStep",
        declared: str = "mode",
        lengths: Sequence[int] = (1, 3, 5),
        end: str = "terminated",
        faulty: str = "",
    ) -> None:
        self.num_envs = num_envs
        self._mode = AutoresetMode(mode)
        if declared:
            self.metadata = {"autoreset_mode": self._mode if declared == "mode" else declared}
        self._copies = [CountingEnvironment(lengths=lengths, end=end) for _ in range(num_envs)]
        self.single_observation_space = self._copies[0].observation_space
        self.single_action_space = self._copies[0].action_space
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self._faulty = faulty
        self._done = np.zeros(num_envs, np.bool_)
        self._observation = np.zeros((num_envs, 3), np.int64)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[IntArray, dict[str, Any]]:
        mask = (options or {}).get("reset_mask")
        for index, copy in enumerate(self._copies):
            if mask is None or mask[index]:
                self._observation[index] = copy.reset(seed=index if mask is None else None)[0]
        return self._observation.copy(), {}

    def step(self, actions: IntArray) -> tuple[IntArray, Any, Any, Any, dict[str, Any]]:
        reward = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        final = np.zeros_like(self._observation)
        for index, copy in enumerate(self._copies):
            if self._mode == AutoresetMode.NEXT_STEP and self._done[index]:
                self._observation[index] = copy.reset()[0]
                continue
            result = copy.step(actions[index])
            self._observation[index], reward[index], terminated[index], truncated[index], _ = result
            if self._mode == AutoresetMode.SAME_STEP and (terminated[index] or truncated[index]):
                final[index] = self._observation[index]
                self._observation[index] = copy.reset()[0]
        self._done = terminated | truncated
        same = self._mode == AutoresetMode.SAME_STEP and self._faulty != "no_final"
        observation = self._observation[:1] if self._faulty == "one_row" else self._observation.copy()
        flags = np.int64 if self._faulty == "integer_flags" else np.bool_
        infos = {"final_obs": final, "_final_obs": self._done} if same else {}
        return observation, reward, terminated.astype(flags), truncated.astype(flags), infos


def build_small_vector(*, num_envs: int) -> CountingVector:
    """Builds one copy, however many are wanted."""
    return CountingVector(num_envs=num_envs - 1)


class NestedEnvironment(gymnasium.Env[dict[str, Any], tuple[Any, ...]]):
    """Every kind of space at once, nested; refuses actions that are not in its action space. Episodes of 4 steps."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict(
            {
                "a": spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float64), "y": spaces.Discrete(5, start=-2)}, sort_keys=False),
                "b": spaces.Tuple((spaces.Box(0, 255, (2, 3), np.uint8), spaces.MultiBinary(3))),
            }
        )
        self.action_space = spaces.Tuple(
            (
                spaces.Discrete(3, start=-1),
                spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])),
                spaces.Dict({"torque": spaces.Box(-1, 1, (2,), np.float64), "brake": spaces.MultiBinary(2)}),
            )
        )
        self._step = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return self._observe(), {}

    def step(self, action: tuple[Any, ...]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"action {action} is not in {self.action_space}")
        self._step += 1
        return self._observe(), float(action[0]), self._step >= 4, False, {}

    def _observe(self) -> dict[str, Any]:
        return {
            "a": {"x": self.np_random.uniform(-1, 1, 2), "y": np.int64(self._step - 2)},
            "b": (np.full((2, 3), self._step, np.uint8), np.array([1, 0, self._step % 2], np.int8)),
        }


class PickEnvironment(gymnasium.Env[Any, Any]):
    """Episodes of one step; the reward is 1 for repeating the observation, a level that reset options can set."""

    def __init__(self, *, levels: int = 4, start: int = 0) -> None:
        self.observation_space = spaces.Discrete(levels, start=start)
        self.action_space = spaces.Discrete(levels, start=start)
        self._levels, self._start = levels, start
        self._level = start

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(self._start, self._start + self._levels))
        self._level = int((options or {}).get("level", drawn))
        return self._level, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is not in {self.action_space}")
        return self._level, float(action == self._level), True, False, {}
