"""What `/metrics` answers."""

from __future__ import annotations

import pytest

from rollstream.clock import FakeClock
from rollstream.errors import ConfigError
from rollstream.metrics import Counters, Exposition, Gauges, Waits, counters_source, names, render, waits_source


def lines(exposition: Exposition) -> list[str]:
    text = render(exposition.registry()).decode()
    return [line for line in text.splitlines() if line.startswith("rollstream_")]


def test_counters_show_under_their_declared_names() -> None:
    counters = Counters()
    counters.add("env_steps_sampled", 128)
    counters.add("env_steps_dropped", 8, reason="stale")
    assert lines(Exposition(counters_source(counters))) == [
        "rollstream_env_steps_sampled_total 128.0",
        'rollstream_env_steps_dropped_total{reason="stale"} 8.0',
    ]


def test_a_counter_of_the_user_s_own_step_shows_by_name() -> None:
    counters = Counters()
    counters.add("goals_reached", 3)
    counters.add("updates", 1, reason="odd")
    assert lines(Exposition(counters_source(counters))) == [
        'rollstream_other_total{name="goals_reached",reason=""} 3.0',
        'rollstream_other_total{name="updates",reason="odd"} 1.0',
    ]


def test_values_are_those_of_the_moment_of_the_scrape() -> None:
    counters = Counters()
    registry = Exposition(counters_source(counters)).registry()
    counters.add("updates", 1)
    assert b"rollstream_updates_total 1.0" in render(registry)
    counters.add("updates", 1)
    assert b"rollstream_updates_total 2.0" in render(registry)


def test_help_tells_the_sentence_and_the_unit() -> None:
    gauges = Gauges()
    gauges.set(names.READY, 1)
    text = render(Exposition(gauges).registry()).decode()
    assert "# HELP rollstream_ready 1 when this process can do its job now, otherwise 0. Unit: 1." in text
    assert "# TYPE rollstream_ready gauge" in text


def test_the_process_tells_its_memory_and_cpu_time() -> None:
    text = render(Exposition().registry()).decode()
    assert "process_resident_memory_bytes" in text
    assert "process_cpu_seconds_total" in text


def test_waits_show_as_totals_and_long_ones_while_they_last(clock: FakeClock) -> None:
    waits = Waits(clock)
    exposition = Exposition(waits_source(waits))
    with waits.waiting(who="learner", for_whom="actors"):
        clock.advance(2.0)
        assert lines(exposition) == [
            'rollstream_waited_seconds_total{for_whom="actors",who="learner"} 2.0',
            'rollstream_waiting_seconds{for_whom="actors",who="learner"} 2.0',
        ]
    assert lines(exposition) == ['rollstream_waited_seconds_total{for_whom="actors",who="learner"} 2.0']


def test_a_gauge_can_be_taken_away() -> None:
    gauges = Gauges()
    gauges.set(names.MEAN_RETURN, 21.5, experiment="x-1")
    gauges.set(names.MEAN_RETURN, 22.5, experiment="x-1")
    assert lines(Exposition(gauges)) == ['rollstream_mean_return{experiment="x-1"} 22.5']
    gauges.set(names.MEAN_RETURN, None, experiment="x-1")
    assert lines(Exposition(gauges)) == []


def test_labels_must_be_the_declared_ones() -> None:
    with pytest.raises(ConfigError, match=r"metric rollstream_mean_return has the labels \['experiment'\], got \['run'\]"):
        Gauges().set(names.MEAN_RETURN, 1.0, run="x")
