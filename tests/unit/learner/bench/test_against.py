"""Figures of `rollstream bench train --against rllib`: what is made of reports that came, ours and theirs."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rollstream.clock import FakeClock
from rollstream.errors import ConfigError
from rollstream_learner.bench.against import PARTS, main
from rollstream_learner.bench.breaking import FILE, SOURCE, WORDS, last_frame
from rollstream_learner.bench.peers.environments import SleepingEnvironment
from rollstream_learner.bench.rllib_run import SETTINGS, RllibRun
from rollstream_learner.bench.training_run import Seen, TrainingRun

METER = SimpleNamespace(rss_mb=512.4, pss_mb=300.0, processes=6)


def ours(*reports: dict[str, Any]) -> TrainingRun:
    run = TrainingRun("ppo", environment="CartPole-v1", seconds=9.0, folder=Path("none"), clock=FakeClock())
    run.seen = [Seen(after_s=2.0 + report["wall_s"], report=report) for report in reports]
    run.meter = METER  # type: ignore[assignment]
    run.machine_cores_busy = 1.0
    return run


def report(wall_s: float, *, steps: int, mean_return: float | None = None, updates: int = 1) -> dict[str, Any]:
    counters = {"env_steps_sampled": steps + 8, "env_steps_trained": steps, "env_steps_dropped{stale}": 6}
    return {
        "wall_s": wall_s,
        "env_steps": steps + 8,
        "env_steps_trained": steps,
        "updates": updates,
        "mean_return": mean_return,
        "counters": counters,
    }


def test_rates_are_those_after_the_warm_up_and_times_begin_with_the_process() -> None:
    run = ours(
        report(0.0, steps=0, updates=0),
        report(1.0, steps=100, updates=2),
        report(2.0, steps=1_000, mean_return=449.0, updates=10),
        report(4.0, steps=5_000, mean_return=451.0, updates=50),
    )
    found = run.figures(warm_up_s=2.0)
    assert found["env_steps_trained_per_s"] == 2_000.0
    assert found["updates_per_s"] == 20.0
    assert found["first_result_after_s"] == 3.0
    assert found["goal_after_training_s"] == 4.0
    assert found["goal_after_start_s"] == 6.0
    assert found["goal_env_steps"] == 5_008
    assert found["env_steps_in_flight"] == 2
    assert found["rss_mb"] == 512


def test_a_run_without_results_says_so() -> None:
    run = ours(report(1.0, steps=100))
    run.words = "one\nthe last words\n"
    assert run.figures(warm_up_s=0.0) == {"failed": ["the last words"]}


def test_reports_of_another_run_are_never_taken_for_its_own(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    run = TrainingRun("ppo", environment="CartPole-v1", seconds=9.0, folder=tmp_path, clock=FakeClock())
    with pytest.raises(ConfigError, match="holds the reports of another run"):
        run.run()


def test_theirs_counts_each_environment_step_once() -> None:
    run = RllibRun(Path("python"), "ppo", SETTINGS["ppo"]["stock"], seconds=9.0, goal=0.0, clock=FakeClock())
    told = {"rows_per_update": 128, "env_steps_trained_as_told": 127_000.0, "mean_return": None, "healthy_runners": 2}
    first = {**told, "wall_s": 5.0, "env_steps": 4_000.0, "rows_trained": 24_000.0}
    last = {**told, "wall_s": 9.0, "env_steps": 8_000.0, "rows_trained": 49_600.0, "env_steps_trained_as_told": 254_000.0}
    run.seen = [Seen(after_s=25.0, report=first), Seen(after_s=29.0, report=last)]
    run.meter = METER  # type: ignore[assignment]
    run.machine_cores_busy = 1.0
    found = run.figures()
    assert found["env_steps_trained_per_s"] == 1_000.0
    assert found["updates_per_s"] == 50.0
    assert found["first_result_after_s"] == 25.0
    assert found["trained_as_told_per_env_step"] == 31.75
    run.seen, run.code = run.seen[:1], 1
    assert run.figures() == {"failed": ["1 results, exit code 1"]}


def test_a_sleeping_environment_has_episodes_of_200_steps() -> None:
    sleeping = SleepingEnvironment(step_s=0.0)
    sleeping.reset()
    assert [sleeping.step(0)[3] for _ in range(200)].index(True) == 199


def test_the_users_simulator_breaks_and_stays_broken(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile(SOURCE, FILE, "exec"), names)
    for steps in (2_000, 1):
        simulator = names["Simulator"](str(tmp_path / "told"))
        simulator.reset()
        for _ in range(steps - 1):
            simulator.step(0)
        with pytest.raises(RuntimeError, match=WORDS) as raised:
            simulator.step(0)
        assert last_frame("".join(traceback.format_exception(raised.value))) == FILE
    assert (tmp_path / "told").exists()
    assert last_frame("error: no traceback") == ""


def test_parts_that_there_are_not_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "sac"]) != 0
    assert f"--only sac: there is no such part; choose from {', '.join(PARTS)}" in capsys.readouterr().err
