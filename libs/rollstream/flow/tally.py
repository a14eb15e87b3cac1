"""Episodes and lag of what a flow was fed, for reports: written by gathers and updates, read by `report`."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollstream.spaces import Episodes

__all__ = ["Lag", "Tally"]

EPISODES_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """Mean and largest lag in versions; None when nothing was trained on."""

    mean: float | None
    largest: float | None


class Tally:
    """The last 100 episodes, and the lag of everything trained on since it was last asked for. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._returns: deque[float] = deque(maxlen=EPISODES_KEPT)
        self._lengths: deque[int] = deque(maxlen=EPISODES_KEPT)
        self._by_policy: dict[str, deque[float]] = {}
        self._lag_sum = 0.0
        self._lag_rows = 0
        self._largest_lag = 0

    def episodes_ended(self, episodes: Episodes, *, policy: str = "") -> None:
        """Note episodes that ended; of the agents of `policy`, where there are several."""
        with self._lock:
            self._returns.extend(episodes.returns.tolist())
            self._lengths.extend(episodes.lengths.tolist())
            if policy:
                self._by_policy.setdefault(policy, deque(maxlen=EPISODES_KEPT)).extend(episodes.returns.tolist())

    def trained(self, *, oldest_lag: int, newest_lag: int, rows: int) -> None:
        """Note the lag of a batch that was trained on; its mean is taken as the middle of its oldest and newest."""
        with self._lock:
            self._lag_sum += (oldest_lag + newest_lag) / 2 * rows
            self._lag_rows += rows
            self._largest_lag = max(self._largest_lag, oldest_lag)

    def mean_return(self) -> float | None:
        """Mean return of the last 100 episodes; None before the first has ended."""
        with self._lock:
            return float(np.mean(self._returns)) if self._returns else None

    def mean_returns(self) -> dict[str, float]:
        """Mean return of the last 100 episodes of the agents of each policy; empty where there is one policy for one agent."""
        with self._lock:
            return {policy: float(np.mean(returns)) for policy, returns in self._by_policy.items() if returns}

    def mean_episode_steps(self) -> float | None:
        """Mean length of the last 100 episodes; None before the first has ended."""
        with self._lock:
            return float(np.mean(self._lengths)) if self._lengths else None

    def take_lag(self) -> Lag:
        """The lag since the last call."""
        with self._lock:
            if not self._lag_rows:
                return Lag(mean=None, largest=None)
            lag = Lag(mean=self._lag_sum / self._lag_rows, largest=float(self._largest_lag))
            self._forget_lag()
            return lag

    def state(self) -> dict[str, Any]:
        with self._lock:
            by_policy = {policy: list(returns) for policy, returns in self._by_policy.items()}
            return {"returns": list(self._returns), "lengths": list(self._lengths), "by_policy": by_policy}

    def restore(self, state: Mapping[str, Any]) -> None:
        with self._lock:
            self._returns = deque((float(value) for value in state["returns"]), maxlen=EPISODES_KEPT)
            self._lengths = deque((int(value) for value in state["lengths"]), maxlen=EPISODES_KEPT)
            by_policy = state.get("by_policy", {})
            self._by_policy = {policy: deque(returns, maxlen=EPISODES_KEPT) for policy, returns in by_policy.items()}

    def _forget_lag(self) -> None:
        self._lag_sum = 0.0
        self._lag_rows = 0
        self._largest_lag = 0
