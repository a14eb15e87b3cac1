"""Live progress and its one line."""

from __future__ import annotations

import io

from rich.console import Console

from rollstream.clock import FakeClock
from rollstream_cli.progress import LiveProgress, PlainProgress, describe_report, describe_waits, make_progress

REPORT = {
    "wall_s": 2.0,
    "env_steps": 12_000,
    "env_steps_per_s": 4_000.4,
    "updates": 40,
    "updates_per_s": 13.0,
    "mean_return": 95.25,
    "lag": 1.5,
    "waits": {"learner-0 -> actors": 0.5},
}


def test_a_report_is_one_line_with_what_people_look_at() -> None:
    line = describe_report(REPORT, since_s=2.0)
    assert line == ("env steps 12,000 (4,000/s)  updates 40 (13/s)  return 95.25  lag 1.5  waits: learner-0 -> actors 25 %")


def test_unknown_numbers_are_dashes_not_nan() -> None:
    assert describe_report({"env_steps": 0, "mean_return": None, "lag": None}) == "env steps 0  return -  lag -"


def test_only_the_three_longest_waits_show() -> None:
    waits = {"a -> b": 0.001, "c -> d": 0.1, "e -> f": 0.4, "g -> h": 0.2, "i -> j": 0.3}
    assert describe_waits(waits, since_s=1.0) == "waits: e -> f 40 %, i -> j 30 %, g -> h 20 %"
    assert describe_waits({}, since_s=1.0) == ""
    assert describe_waits(None, since_s=1.0) == ""


def test_plain_progress_shows_a_line_every_few_seconds() -> None:
    output, clock = io.StringIO(), FakeClock()
    progress = PlainProgress(Console(file=output, width=200), clock=clock)
    for wall_s in range(1, 8):
        clock.advance(1.0)
        progress.report({**REPORT, "wall_s": float(wall_s)})
    progress.say("running [not markup]")
    progress.close()
    lines = output.getvalue().splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["1", "4", "7"]
    assert lines[-1] == "running [not markup]"


def test_a_terminal_gets_a_line_that_changes() -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=200)
    progress = make_progress(console, clock=FakeClock())
    assert isinstance(progress, LiveProgress)
    progress.say("ppo-1")
    progress.report(REPORT)
    progress.close()
    assert "ppo-1" in output.getvalue()
    assert isinstance(make_progress(Console(file=io.StringIO()), clock=FakeClock()), PlainProgress)
