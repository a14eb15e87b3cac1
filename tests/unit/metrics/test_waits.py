"""Nothing waits silently."""

from __future__ import annotations

import logging

import pytest

from rollstream.clock import FakeClock
from rollstream.metrics import Waits, WaitTotal


def test_a_wait_adds_to_the_total_of_its_pair(clock: FakeClock) -> None:
    waits = Waits(clock)
    for seconds in (2.0, 3.0):
        with waits.waiting(who="learner", for_whom="actors"):
            clock.advance(seconds)
    assert waits.totals() == (WaitTotal(who="learner", for_whom="actors", waits=2, total_s=5.0, longest_s=3.0),)


def test_a_wait_can_be_entered_again_when_it_has_ended(clock: FakeClock) -> None:
    waits = Waits(clock)
    waiting = waits.waiting(who="learner", for_whom="actors")
    for seconds in (2.0, 3.0):
        with waiting:
            clock.advance(seconds)
    assert waits.now() == ()
    assert waits.totals() == (WaitTotal(who="learner", for_whom="actors", waits=2, total_s=5.0, longest_s=3.0),)


def test_the_total_counts_a_wait_under_way(clock: FakeClock) -> None:
    waits = Waits(clock)
    with waits.waiting(who="actor-1", for_whom="credit of edge rollouts"):
        clock.advance(4.0)
        assert waits.totals()[0].total_s == 4.0


def test_waits_under_way_show_after_a_second(clock: FakeClock) -> None:
    waits = Waits(clock)
    with waits.waiting(who="learner", for_whom="actors"):
        clock.advance(0.9)
        assert waits.now() == ()
        clock.advance(0.2)
        (wait,) = waits.now()
        assert (wait.who, wait.for_whom) == ("learner", "actors")
        assert wait.waited_s == pytest.approx(1.1)
    assert waits.now() == ()


def test_the_oldest_wait_comes_first(clock: FakeClock) -> None:
    waits = Waits(clock)
    with waits.waiting(who="a", for_whom="b"):
        clock.advance(5.0)
        with waits.waiting(who="c", for_whom="d"):
            clock.advance(2.0)
            assert [wait.who for wait in waits.now()] == ["a", "c"]


def test_a_long_wait_is_logged_once_while_it_lasts_and_names_both_sides(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    waits = Waits(clock)
    with caplog.at_level(logging.WARNING), waits.waiting(who="learner", for_whom="actors"):
        clock.advance(9.0)
        waits.check()
        assert caplog.messages == []
        clock.advance(1.0)
        waits.check()
        waits.check()
        assert caplog.messages == ["learner has been waiting for actors for 10 s"]
        clock.advance(60.0)
        waits.check()
        assert caplog.messages[1:] == ["learner has been waiting for actors for 70 s"]
    assert caplog.messages[-1] == "learner waited for actors for 70 s; the wait is over"


def test_a_long_wait_that_nobody_checked_is_logged_at_its_end(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    waits = Waits(clock)
    with caplog.at_level(logging.WARNING):
        with waits.waiting(who="a", for_whom="b"):
            clock.advance(11.0)
        with waits.waiting(who="c", for_whom="d"):
            clock.advance(2.0)
    assert caplog.messages == ["a waited for b for 11 s; the wait is over"]


def test_the_loop_that_waits_can_log_it_itself(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), Waits(clock).waiting(who="a", for_whom="b") as wait:
        clock.advance(10.0)
        wait.still()
        assert caplog.messages == ["a has been waiting for b for 10 s"]


def test_a_wait_that_fails_is_counted_too(clock: FakeClock) -> None:
    waits = Waits(clock)
    with pytest.raises(KeyError), waits.waiting(who="a", for_whom="b"):
        clock.advance(1.0)
        raise KeyError
    assert waits.totals()[0].total_s == 1.0
    assert waits.now(at_least_s=0.0) == ()
