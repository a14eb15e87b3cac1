"""Nothing waits silently: whoever waits says so, and for whom.

    with waits.waiting(who="learner", for_whom="samples of table replay") as wait:
        while not ready(timeout_s=1.0):
            wait.still()

Every wait adds to the total of its pair (the autoscaler's signal: who is starved, who is blocked). One older than a second shows
as a metric; one older than ten seconds is logged, naming both sides, while it lasts (by `still`, or by a service's
heartbeat: `check`) and at its end.
"""

from __future__ import annotations

import logging
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType

from rollstream.clock import Clock

__all__ = ["Wait", "WaitTotal", "Waiting", "Waits"]

_LOG = logging.getLogger("rollstream.waits")
_SHOWN_AFTER_S = 1.0
_LOGGED_AFTER_S = 10.0
_LOGGED_AGAIN_AFTER_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A wait under way: who waits, for whom, and for how long already."""

    who: str
    for_whom: str
    waited_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitTotal:
    """All waits of one pair since the process began: their number, their seconds together, and those of the longest."""

    who: str
    for_whom: str
    waits: int
    total_s: float
    longest_s: float


class Wait:
    """One wait under way, as `waiting` hands it out."""

    def __init__(self, clock: Clock, *, who: str, for_whom: str) -> None:
        self.who = who
        self.for_whom = for_whom
        self._clock = clock
        self._start_s = clock.monotonic_s()
        self._next_log_s = self._start_s + _LOGGED_AFTER_S
        self._lock = threading.Lock()
        self._was_logged = False

    @property
    def waited_s(self) -> float:
        return self._clock.monotonic_s() - self._start_s

    def still(self) -> None:
        """Call it now and then from the loop that waits: logs a wait that has become long."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            due = now_s >= self._next_log_s
            if due:
                self._next_log_s = now_s + _LOGGED_AGAIN_AFTER_S
                self._was_logged = True
        if due:
            _LOG.warning("%s has been waiting for %s for %.0f s", self.who, self.for_whom, now_s - self._start_s)

    def _end(self) -> float:
        waited_s = self.waited_s
        if self._was_logged or waited_s >= _LOGGED_AFTER_S:
            _LOG.warning("%s waited for %s for %.0f s; the wait is over", self.who, self.for_whom, waited_s)
        return waited_s


class _Total:
    """Ended waits of one pair."""

    __slots__ = ("longest_s", "total_s", "waits")

    def __init__(self) -> None:
        self.waits = 0
        self.total_s = 0.0
        self.longest_s = 0.0

    def add(self, waited_s: float) -> None:
        self.waits += 1
        self.total_s += waited_s
        self.longest_s = max(self.longest_s, waited_s)


class Waits:
    """All waits of one process. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._now: set[Wait] = set()
        self._ended: dict[tuple[str, str], _Total] = {}

    def waiting(self, *, who: str, for_whom: str) -> AbstractContextManager[Wait]:
        """Say that `who` waits for `for_whom` while the block runs. When it has ended, it can be entered again, for the next wait."""
        return _Block(self, who, for_whom)

    def begin(self, *, who: str, for_whom: str) -> Wait:
        """A wait begins now; `end` it."""
        wait = Wait(self._clock, who=who, for_whom=for_whom)
        with self._lock:
            self._now.add(wait)
        return wait

    def end(self, wait: Wait) -> None:
        """It is over, and counts."""
        waited_s = wait._end()
        with self._lock:
            self._now.discard(wait)
            self._ended.setdefault((wait.who, wait.for_whom), _Total()).add(waited_s)

    def check(self) -> None:
        """Log the waits that have become long. A service calls it with its heartbeat, so that a stuck loop is told of too."""
        with self._lock:
            under_way = list(self._now)
        for wait in under_way:
            wait.still()

    def now(self, *, at_least_s: float = _SHOWN_AFTER_S) -> tuple[Waiting, ...]:
        """Waits under way that are at least this old, the oldest first."""
        with self._lock:
            under_way = list(self._now)
        found = [Waiting(who=wait.who, for_whom=wait.for_whom, waited_s=wait.waited_s) for wait in under_way]
        return tuple(sorted((wait for wait in found if wait.waited_s >= at_least_s), key=lambda wait: -wait.waited_s))

    def totals(self) -> tuple[WaitTotal, ...]:
        """All waits by pair, those under way included; the pair that waited longest in total first."""
        with self._lock:
            summed = {pair: (total.waits, total.total_s, total.longest_s) for pair, total in self._ended.items()}
            for wait in self._now:
                waits, total_s, longest_s = summed.get((wait.who, wait.for_whom), (0, 0.0, 0.0))
                waited_s = wait.waited_s
                summed[wait.who, wait.for_whom] = (waits + 1, total_s + waited_s, max(longest_s, waited_s))
        found = [
            WaitTotal(who=who, for_whom=for_whom, waits=waits, total_s=total_s, longest_s=longest_s)
            for (who, for_whom), (waits, total_s, longest_s) in summed.items()
        ]
        return tuple(sorted(found, key=lambda total: -total.total_s))


class _Block:
    """The block of a `with` that waits; a class, since a flow enters one for every message."""

    __slots__ = ("_for_whom", "_wait", "_waits", "_who")

    def __init__(self, waits: Waits, who: str, for_whom: str) -> None:
        self._waits = waits
        self._who = who
        self._for_whom = for_whom

    def __enter__(self) -> Wait:
        self._wait = self._waits.begin(who=self._who, for_whom=self._for_whom)
        return self._wait

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._waits.end(self._wait)
