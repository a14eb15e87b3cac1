"""The summary of a run, and what its processes cost."""

from __future__ import annotations

import io

from rich.console import Console

from rollstream.clock import FakeClock
from rollstream_cli.summary import cores_between, print_measurement, print_summary, with_usage
from rollstream_cli.usage import UsageMeter, UsageSample


def sample(at_s: float, cpu_s: float, **rss_mb: float) -> UsageSample:
    return UsageSample(at_s=at_s, cpu_s=cpu_s, rss_mb=rss_mb)


def test_cores_are_processor_seconds_per_second() -> None:
    assert cores_between(sample(10.0, 5.0), sample(14.0, 11.0)) == 1.5


def test_usage_joins_the_summary_with_the_peak_of_memory() -> None:
    meter = UsageMeter(dict, clock=FakeClock())
    meter.peak = sample(2.0, 0.0, cli=50.04, actor=70.0)
    joined = with_usage({"mean_return": 500.0}, meter=meter, first=sample(0.0, 0.0), last=sample(4.0, 6.0, cli=1.0))
    assert joined == {
        "mean_return": 500.0,
        "cores_used": 1.5,
        "rss_total_mb": 120.0,
        "rss_mb": {"actor": 70.0, "cli": 50.0},
    }


def test_a_summary_for_people_leaves_out_what_is_not_known() -> None:
    output = io.StringIO()
    summary = {"mean_return": 487.123, "env_steps": 60_000, "lag": None, "checkpoint": "/runs/a/1", "other": 1}
    print_summary(Console(file=output, width=80), summary, title="a: succeeded")
    assert output.getvalue().splitlines() == [
        "a: succeeded",
        "  mean return  487.1",
        "  env steps    60,000",
        "  checkpoint   /runs/a/1",
    ]


def test_a_measurement_for_people_has_its_rates() -> None:
    output = io.StringIO()
    print_measurement(Console(file=output, width=80), {"env_steps_per_s": 12_345.6, "cores_used": 1.5}, title="ppo")
    assert "env steps sampled per second  12,346" in output.getvalue()


def test_a_meter_counts_this_process_and_those_it_is_told_of() -> None:
    import os

    meter = UsageMeter(lambda: {"self": os.getpid(), "gone": 2**22 - 1}, clock=FakeClock())
    looked = meter.sample()
    assert looked.rss_mb["cli"] > 5.0
    assert "self" in looked.rss_mb
    assert "gone" not in looked.rss_mb
    assert meter.peak is looked
