"""Counters that add up: named integers that only grow, so that what was sampled can be accounted for to the last step.

    sampled = trained + stored + dropped (by reason) + in flight

A counter may be split by reason (`env_steps_dropped{stale}`); asking for it without a reason gives the sum.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from rollstream.errors import ConfigError

__all__ = ["Counters", "counter_key", "env_steps_in_flight", "split_counter_key"]


def counter_key(name: str, reason: str = "") -> str:
    """The key of a counter in snapshots, reports and Redis: `name`, or `name{reason}`."""
    return f"{name}{{{reason}}}" if reason else name


def split_counter_key(key: str) -> tuple[str, str]:
    """Name and reason (empty when there is none) of a counter's key.

    >>> split_counter_key("env_steps_dropped{stale}")
    ('env_steps_dropped', 'stale')
    """
    name, _, reason = key.removesuffix("}").partition("{")
    return name, reason


def env_steps_in_flight(counters: Mapping[str, int]) -> int:
    """Sampled environment steps that are neither trained on, nor stored, nor dropped yet; by a snapshot's counters."""
    totals: dict[str, int] = {}
    for key, value in counters.items():
        name, _ = split_counter_key(key)
        totals[name] = totals.get(name, 0) + value
    settled = ("env_steps_trained", "env_steps_stored", "env_steps_dropped")
    return totals.get("env_steps_sampled", 0) - sum(totals.get(name, 0) for name in settled)


class Counters:
    """Named integers that only grow. Thread-safe.

    >>> counters = Counters()
    >>> counters.add("env_steps_dropped", 8, reason="stale")
    >>> counters.add("env_steps_dropped", 2, reason="fault")
    >>> counters.value("env_steps_dropped")
    10
    """

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, name: str, amount: int = 1, *, reason: str = "") -> None:
        """Let a counter grow by `amount`."""
        if amount < 0:
            raise ConfigError(
                f"counter {counter_key(name, reason)} only grows, got {amount}; count the opposite under its own name"
            )
        key = counter_key(name, reason) if reason else name
        values = self._values
        with self._lock:
            values[key] = values.get(key, 0) + int(amount)

    def value(self, name: str, *, reason: str = "") -> int:
        """The counter; without a reason the sum over all of its reasons. 0 when nothing was counted."""
        with self._lock:
            if reason:
                return self._values.get(counter_key(name, reason), 0)
            return sum(value for key, value in self._values.items() if split_counter_key(key)[0] == name)

    def snapshot(self) -> dict[str, int]:
        """All counters by key, a copy: for reports, Redis and checkpoints."""
        with self._lock:
            return dict(sorted(self._values.items()))

    def restore(self, saved: Mapping[str, int]) -> None:
        """Take over what was saved; of the present and the saved value the larger one stays, so none runs backwards."""
        with self._lock:
            for key, value in saved.items():
                self._values[key] = max(self._values.get(key, 0), int(value))
