"""A bare Gymnasium loop: step, act, step; nothing is stored."""

from __future__ import annotations

from typing import Any, Protocol

import gymnasium

__all__ = ["BareLoop"]


class _Acts(Protocol):
    def act(self, observation: Any) -> Any: ...


class BareLoop:
    """Environments in one process, as `gymnasium.make_vec` makes them."""

    def __init__(self, environment: str, *, envs: int) -> None:
        self._environments = gymnasium.make_vec(environment, num_envs=envs, vectorization_mode="sync")
        self._observation, _ = self._environments.reset(seed=0)

    def run(self, policy: _Acts, steps: int) -> None:
        """Act for `steps` vector steps."""
        observation = self._observation
        for _ in range(steps):
            action = policy.act({"observation": observation})["action"]
            observation, *_ = self._environments.step(action)
        self._observation = observation

    def close(self) -> None:
        """End the environments."""
        self._environments.close()
