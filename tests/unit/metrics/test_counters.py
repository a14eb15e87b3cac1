"""Counters that add up."""

from __future__ import annotations

import threading

import pytest

from rollstream.errors import ConfigError
from rollstream.metrics import Counters, env_steps_in_flight, split_counter_key


def test_a_counter_grows_by_what_is_added() -> None:
    counters = Counters()
    counters.add("updates")
    counters.add("updates", 4)
    assert counters.value("updates") == 5
    assert counters.value("episodes") == 0


def test_reasons_are_told_apart_and_summed() -> None:
    counters = Counters()
    counters.add("env_steps_dropped", 8, reason="stale")
    counters.add("env_steps_dropped", 2, reason="fault")
    assert counters.value("env_steps_dropped", reason="stale") == 8
    assert counters.value("env_steps_dropped") == 10
    assert counters.snapshot() == {"env_steps_dropped{fault}": 2, "env_steps_dropped{stale}": 8}


def test_a_counter_whose_name_begins_like_another_is_its_own() -> None:
    counters = Counters()
    counters.add("updates", 1)
    counters.add("updates_skipped", 5)
    assert counters.value("updates") == 1


def test_a_counter_never_shrinks() -> None:
    counters = Counters()
    with pytest.raises(ConfigError, match=r"counter env_steps_dropped\{stale\} only grows, got -1"):
        counters.add("env_steps_dropped", -1, reason="stale")


def test_restoring_keeps_the_larger_value() -> None:
    counters = Counters()
    counters.add("updates", 10)
    counters.restore({"updates": 7, "episodes": 3})
    assert counters.snapshot() == {"episodes": 3, "updates": 10}


def test_steps_in_flight_are_what_is_not_accounted_for_yet() -> None:
    counters = Counters()
    counters.add("env_steps_sampled", 100)
    counters.add("env_steps_trained", 60)
    counters.add("env_steps_stored", 10)
    counters.add("env_steps_dropped", 5, reason="stale")
    counters.add("env_steps_dropped", 1, reason="fault")
    assert env_steps_in_flight(counters.snapshot()) == 24
    assert env_steps_in_flight({}) == 0


def test_a_key_splits_into_name_and_reason() -> None:
    assert split_counter_key("updates") == ("updates", "")
    assert split_counter_key("env_steps_dropped{stale}") == ("env_steps_dropped", "stale")


def test_threads_lose_no_count() -> None:
    counters = Counters()

    def count() -> None:
        for _ in range(2_000):
            counters.add("updates")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counters.value("updates") == 8_000
