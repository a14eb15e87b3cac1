"""Signals as events."""

from __future__ import annotations

import os
import signal

import pytest

from rollstream_cli.interrupts import catch_interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_asks_and_the_second_hurries(number: signal.Signals) -> None:
    told: list[str] = []
    with catch_interrupts() as interrupts:
        interrupts.on_first = lambda: told.append("asked")
        os.kill(os.getpid(), number)
        assert (interrupts.asked.is_set(), interrupts.hurry.is_set()) == (True, False)
        os.kill(os.getpid(), number)
        assert interrupts.hurry.is_set()
    assert told == ["asked"]


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with catch_interrupts():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
