"""Time comes in through the door: everything that waits or measures takes a `Clock`.

`SystemClock` is the real one. `FakeClock` is for tests: time stands still until a test moves it, and a sleeper is woken by it.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

__all__ = ["Clock", "Deadline", "FakeClock", "SystemClock"]


class Clock(Protocol):
    """What a component needs to know about time."""

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start; never goes back. For durations and deadlines."""
        ...

    def wall_s(self) -> float:
        """Seconds since 1970 (UTC). For people; never for durations."""
        ...

    def sleep(self, duration_s: float) -> None:
        """Block the calling thread for `duration_s` seconds."""
        ...


class SystemClock:
    """The machine's clocks."""

    monotonic_s = staticmethod(time.perf_counter)

    def wall_s(self) -> float:
        return time.time()

    def sleep(self, duration_s: float) -> None:
        time.sleep(max(0.0, duration_s))


class FakeClock:
    """A clock that a test moves by hand with `advance`. `sleep` advances it, so a single-threaded wait ends at once."""

    def __init__(self, *, start_s: float = 0.0) -> None:
        self._now_s = start_s
        self._lock = threading.Lock()

    def monotonic_s(self) -> float:
        with self._lock:
            return self._now_s

    def wall_s(self) -> float:
        return self.monotonic_s()

    def sleep(self, duration_s: float) -> None:
        self.advance(max(0.0, duration_s))

    def advance(self, duration_s: float) -> None:
        """Move time forward by `duration_s` seconds."""
        with self._lock:
            self._now_s += duration_s


class Deadline:
    """A point in time after which a wait gives up.

    >>> clock = FakeClock()
    >>> deadline = Deadline(clock, after_s=5.0)
    >>> clock.advance(4.0); deadline.remaining_s(), deadline.passed()
    (1.0, False)
    """

    def __init__(self, clock: Clock, *, after_s: float) -> None:
        self._clock = clock
        self._start_s = clock.monotonic_s()
        self._end_s = self._start_s + after_s

    def remaining_s(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self._end_s - self._clock.monotonic_s())

    def waited_s(self) -> float:
        """Seconds since the wait began."""
        return self._clock.monotonic_s() - self._start_s

    def passed(self) -> bool:
        return self._clock.monotonic_s() >= self._end_s
