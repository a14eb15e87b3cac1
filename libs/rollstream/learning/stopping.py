"""When a run has done its job."""

from __future__ import annotations

from rollstream.config import StopRule
from rollstream.metrics import Report

__all__ = ["MIN_EPISODES", "reason_to_stop"]

MIN_EPISODES = 100
"""Finished episodes before a mean return counts: as many as it is taken over."""


def reason_to_stop(rule: StopRule, report: Report, *, running_s: float) -> str | None:
    """In words, the first part of `rule` that holds; None when the run goes on.

    Args:
        report: the newest; its `mean_return` is over the last 100 episodes.
        running_s: seconds of running, over all learners that had the run.
    """
    mean = report.mean_return
    if rule.mean_return is not None and report.episodes >= MIN_EPISODES and mean is not None and mean >= rule.mean_return:
        return f"mean return {mean:.1f} over {MIN_EPISODES} episodes reached {rule.mean_return:g}"
    if rule.env_steps is not None and report.env_steps >= rule.env_steps:
        return f"{report.env_steps} environment steps reached {rule.env_steps}"
    if rule.updates is not None and report.updates >= rule.updates:
        return f"{report.updates} updates reached {rule.updates}"
    if rule.wall_s is not None and running_s >= rule.wall_s:
        return f"{running_s:.0f} s of running reached {rule.wall_s:g}"
    return None
