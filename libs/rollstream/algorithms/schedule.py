"""Schedules: numbers that change with the experiment's counter of environment steps, and with nothing else."""

from __future__ import annotations

__all__ = ["linear"]


def linear(start: float, end: float, *, env_steps: int, over_steps: int | None) -> float:
    """From `start` to `end` in a straight line over `over_steps` environment steps, then `end`; `start` for ever when None.

    >>> linear(1.0, 0.0, env_steps=25, over_steps=100)
    0.75
    """
    if over_steps is None:
        return start
    share = min(1.0, max(0.0, env_steps / over_steps))
    return start + (end - start) * share
