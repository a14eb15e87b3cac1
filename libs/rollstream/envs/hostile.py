"""Environments that misbehave on purpose, each in one way: what users' simulators do at three in the morning."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import threading
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

__all__ = ["INSTANCE", "HostileEnvironment", "ReadingEnvironment", "SimulatorBroke", "build_nothing"]


class SimulatorBroke(RuntimeError):
    """The user's own exception type."""


class HostileEnvironment(gymnasium.Env[Any, Any]):
    """Well-behaved for `at_step` environment steps, then not.

    Args:
        fault: `raise_on_build`, `raise_on_build_in_a_worker`, `raise`, `raise_unpicklable`, `sys_exit`, `os_exit`, `segfault`,
            `hang`, `nan_reward`, `nan_observation`, `infinite_observation`, `wrong_shape`, `wrong_dtype`, `float32`,
            `out_of_bounds`, `text_reward`, `raise_on_reset`, `close_hangs`, `close_raises`; anything else behaves.
        at_step: environment steps before it happens, counted over episodes.
    """

    def __init__(self, *, fault: str, at_step: int = 3) -> None:
        if fault == "raise_on_build" or (fault == "raise_on_build_in_a_worker" and multiprocessing.parent_process()):
            raise SimulatorBroke("no license")
        self.observation_space = spaces.Box(-1.0, 1.0, (2, 3), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self._fault = fault
        self._at_step = at_step
        self._steps = 0
        self._started = False
        self.closed = 0
        self._never = threading.Event()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._started = True
        if self._fault == "raise_on_reset":
            raise SimulatorBroke("cannot start the simulator")
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._steps += 1
        reward: Any = 1.0
        if self._steps >= self._at_step:
            self._misbehave()
            reward = {"nan_reward": float("nan"), "text_reward": "much"}.get(self._fault, 1.0)
        return self._observe(), reward, False, self._steps % 5 == 0, {}

    def close(self) -> None:
        self.closed += 1
        if self._fault == "close_hangs" and self._started:
            self._never.wait()
        if self._fault == "close_raises" and self._started:
            raise SimulatorBroke("cannot stop the simulator")

    def _observe(self) -> Any:
        observation = np.full((2, 3), 0.5)
        if self._steps < self._at_step:
            return observation
        changed: dict[str, Callable[[], Any]] = {
            "nan_observation": lambda: np.where(np.arange(6).reshape(2, 3) == 5, np.nan, observation),
            "infinite_observation": lambda: observation * np.inf,
            "wrong_shape": lambda: observation.T,
            "wrong_dtype": lambda: observation.astype(object),
            "float32": lambda: observation.astype(np.float32),
            "out_of_bounds": lambda: observation + 0.5 + 1e-7,
        }
        change = changed.get(self._fault)
        return observation if change is None else change()

    def _misbehave(self) -> None:
        if self._fault == "raise":
            raise SimulatorBroke("the simulator broke")
        if self._fault == "raise_unpicklable":
            raise type("Local", (RuntimeError,), {})("cannot be sent")
        if self._fault == "sys_exit":
            raise SystemExit("license expired")
        if self._fault == "os_exit":
            os._exit(9)
        if self._fault == "segfault":
            ctypes.string_at(0)
        if self._fault == "hang":
            self._never.wait()


class ReadingEnvironment(gymnasium.Env[Any, Any]):
    """Observes text, which has no fixed size."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict({"text": spaces.Text(9)})
        self.action_space = spaces.Discrete(2)


INSTANCE = HostileEnvironment(fault="none")
"""An instance where a class is wanted."""


def build_nothing() -> None:
    """A builder that forgets to return what it built."""
