"""Figures of `rollstream bench graph`: how they are timed and judged, and what is refused."""

from __future__ import annotations

import sys

import pytest

from rollstream.clock import SystemClock
from rollstream_learner.bench.apex import ENVS, STEPS, ApexActor
from rollstream_learner.bench.run import PARTS, main
from rollstream_learner.bench.targets import TARGETS, judge
from rollstream_learner.bench.timing import Pace, alternate


class Steps(SystemClock):
    """Time passes only when a candidate takes it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s


def test_candidates_run_in_turn_and_their_medians_count() -> None:
    clock, order = Steps(), []

    def candidate(name: str, durations_s: list[float]) -> None:
        order.append(name)
        clock.now_s += durations_s[min(order.count(name) - 1, len(durations_s) - 1)]

    slow, fast = [0.5], [0.25]
    times = alternate(
        {"slow": lambda: candidate("slow", slow), "fast": lambda: candidate("fast", fast)},
        pace=Pace(seconds=1.0, repeats=3),
        clock=clock,
    )
    assert times["slow"].median_us == 500_000
    assert times["fast"].p10_us == 250_000
    measured = order[8:]  # after the calls that say how long one takes
    assert measured == (["slow"] * 2 + ["fast"] * 4) * 3


def test_targets_are_met_missed_or_not_measured() -> None:
    document = {"act": {"mlp": {"1": {"best_us": 19.0, "speedup": 3.0}}}}
    found = {each["target"]: each for each in judge(document)}
    assert len(found) == len(TARGETS)
    assert found["act of mlp, batch 1, us"]["met"] is True
    assert found["act of mlp, batch 1, times as fast as torch inference mode"]["met"] is False
    assert found["DQN update of 256, ms"] == {"target": "DQN update of 256, ms", "at_most": 0.6, "measured": None, "met": None}


def test_what_cannot_be_measured_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "act,fly"]) != 0
    assert f"--only fly: there is no such part; choose from {', '.join(PARTS)}" in capsys.readouterr().err
    assert main(["--seconds", "0"]) != 0
    assert "--seconds must be > 0 and --repeats >= 1, got 0.0 and 3" in capsys.readouterr().err


def test_a_python_without_rllib_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--only", "apex", "--seconds", "0.01", "--repeats", "1", "--rllib-python", sys.executable]
    assert main(arguments) != 0
    assert f"--rllib-python {sys.executable}: RLlib's runner failed: ModuleNotFoundError" in capsys.readouterr().err


def test_an_apex_actors_task_gives_a_priority_for_every_transition() -> None:
    actor = ApexActor(clock=SystemClock())
    try:
        priorities = actor.task()
    finally:
        actor.close()
    assert STEPS * ENVS * 0.9 < len(priorities) <= STEPS * ENVS
    assert (priorities >= 0).all()
    assert priorities.max() > 0.5  # untrained values are near 0, rewards are 1
