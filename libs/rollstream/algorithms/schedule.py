"""Schedules: numbers that change with the experiment's counter of environment steps, and with nothing else."""

from __future__ import annotations

from rollstream.graph.optimizers import Linear

__all__ = ["linear"]


def linear(start: float, end: float, *, env_steps: int, over_steps: int | None) -> float:
    """From `start` to `end` in a straight line over `over_steps` environment steps, then `end`; `start` for ever when None.

    >>> linear(1.0, 0.0, env_steps=25, over_steps=100)
    0.75
    """
    return start if over_steps is None else Linear(start=start, end=end, over_steps=over_steps).at(env_steps)
