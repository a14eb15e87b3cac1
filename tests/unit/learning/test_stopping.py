"""When a run has done its job."""

from __future__ import annotations

import pytest

from rollstream.config import StopRule
from rollstream.learning import reason_to_stop
from rollstream.metrics import Report


@pytest.mark.parametrize(
    ("rule", "report", "running_s", "reason"),
    [
        (
            StopRule(mean_return=475),
            Report(episodes=100, mean_return=475.0),
            1.0,
            "mean return 475.0 over 100 episodes reached 475",
        ),
        (StopRule(mean_return=475), Report(episodes=99, mean_return=500.0), 1.0, None),
        (StopRule(mean_return=475), Report(episodes=100, mean_return=474.9), 1.0, None),
        (StopRule(mean_return=475), Report(episodes=100, mean_return=None), 1.0, None),
        (StopRule(env_steps=100), Report(env_steps=100), 1.0, "100 environment steps reached 100"),
        (StopRule(updates=7), Report(updates=8), 1.0, "8 updates reached 7"),
        (StopRule(wall_s=5), Report(), 6.0, "6 s of running reached 5"),
        (StopRule(), Report(env_steps=10**9, updates=10**9), 1e9, None),
    ],
)
def test_the_first_rule_that_holds_ends_the_run(rule: StopRule, report: Report, running_s: float, reason: str | None) -> None:
    assert reason_to_stop(rule, report, running_s=running_s) == reason
