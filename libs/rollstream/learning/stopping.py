"""When a run has done its job: the window of recent returns, and the stop rule over it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from rollstream.config import StopRule
from rollstream.spaces import Episodes

__all__ = ["ReturnWindow", "reason_to_stop"]


class ReturnWindow:
    """Returns of the last episodes. Part of checkpoints, so that a resumed run does not start from an empty window."""

    def __init__(self, *, episodes: int) -> None:
        self._returns: deque[float] = deque(maxlen=episodes)

    def add(self, episodes: Episodes) -> None:
        self._returns.extend(float(value) for value in episodes.returns)

    @property
    def full(self) -> bool:
        return len(self._returns) == self._returns.maxlen

    def mean(self) -> float | None:
        """Mean return of the episodes in the window; None when there are none."""
        return sum(self._returns) / len(self._returns) if self._returns else None

    def state(self) -> dict[str, Any]:
        return {"returns": list(self._returns)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._returns.clear()
        self._returns.extend(float(value) for value in state["returns"])


def reason_to_stop(rule: StopRule, *, window: ReturnWindow, env_steps: int, updates: int, running_s: float) -> str | None:
    """In words, the first part of `rule` that holds; None when the run goes on. `mean_return` needs a full window."""
    mean = window.mean()
    if rule.mean_return is not None and window.full and mean is not None and mean >= rule.mean_return:
        return f"mean return {mean:.1f} over {rule.window_episodes} episodes reached {rule.mean_return:g}"
    if rule.env_steps is not None and env_steps >= rule.env_steps:
        return f"{env_steps} environment steps reached {rule.env_steps}"
    if rule.updates is not None and updates >= rule.updates:
        return f"{updates} updates reached {rule.updates}"
    if rule.wall_s is not None and running_s >= rule.wall_s:
        return f"{running_s:.0f} s of running reached {rule.wall_s:g}"
    return None
