"""Lines that Ctrl-C must not cut in two."""

from __future__ import annotations

import signal
import threading

import pytest

from rollstream.replay.uninterrupted import uninterrupted


def test_an_interrupt_comes_when_the_block_is_done() -> None:
    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):  # noqa: SIM117
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append(1)
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_one_nothing_happens_also_in_other_threads() -> None:
    done: list[int] = []

    def work() -> None:
        with uninterrupted():
            done.append(1)

    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [1, 1]


def test_a_handler_of_the_user_is_called_in_its_time() -> None:
    called: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: called.append(number))
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            assert called == []
        assert called == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)
