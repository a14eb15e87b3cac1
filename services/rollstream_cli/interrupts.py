"""Ctrl-C, SIGTERM and SIGHUP as two events: the first asks for a clean end, the second for a quick one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["Interrupts", "catch_interrupts"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """What has been asked for so far."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        """Somebody wants the end."""
        self.hurry = threading.Event()
        """Somebody wants it now."""
        self.on_first: Callable[[], None] = lambda: None
        """Called once, inside a signal handler: may only do what is reentrant, like `SimpleQueue.put`."""

    def note(self) -> None:
        """One more signal came."""
        if self.asked.is_set():
            self.hurry.set()
            return
        self.asked.set()
        self.on_first()


@contextlib.contextmanager
def catch_interrupts() -> Iterator[Interrupts]:
    """Inside the block signals are noted instead of raised; only in the main thread."""
    interrupts = Interrupts()

    def handler(_number: int, _frame: FrameType | None) -> None:
        interrupts.note()

    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield interrupts
    finally:
        for number, old in before.items():
            signal.signal(number, old)
