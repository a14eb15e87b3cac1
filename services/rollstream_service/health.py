"""Health: is the process alive (its loops turn), and is it ready (it can do its job now)?

Liveness is the progress of loops, not the answer of a web server: a loop that is expected to beat and has not is stuck, and the
probe says which. Readiness is a set of named conditions, all of which must hold.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from rollstream.clock import Clock
from rollstream.metrics import Sample, names

__all__ = ["Health", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Answer to a probe: `ok`, and in words why not."""

    ok: bool
    why: str = ""


@dataclass(slots=True)
class _Loop:
    within_s: float
    beat_s: float


class Health:
    """What probes ask. Thread-safe; loops call `beat`, parts call `condition`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._loops: dict[str, _Loop] = {}
        self._conditions: dict[str, str] = {}
        self._started = False

    def expect(self, loop: str, *, within_s: float) -> None:
        """From now on `loop` must beat at least every `within_s` seconds, until `forget`."""
        with self._lock:
            self._loops[loop] = _Loop(within_s=within_s, beat_s=self._clock.monotonic_s())

    def forget(self, loop: str) -> None:
        """`loop` has ended on purpose."""
        with self._lock:
            self._loops.pop(loop, None)

    def beat(self, loop: str) -> None:
        """`loop` has made progress (or waits on purpose, within a deadline)."""
        with self._lock:
            entry = self._loops.get(loop)
            if entry is not None:
                entry.beat_s = self._clock.monotonic_s()

    def condition(self, name: str, *, ok: bool, why: str = "") -> None:
        """Readiness condition `name` holds, or does not because of `why`."""
        with self._lock:
            self._started = True
            self._conditions[name] = "" if ok else (why or "not yet")

    def live(self) -> Verdict:
        """False when an expected loop has not beaten in time."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            stuck = [
                f"loop {name!r} has made no progress for {now_s - loop.beat_s:.0f} s (allowed {loop.within_s:.0f} s)"
                for name, loop in self._loops.items()
                if now_s - loop.beat_s > loop.within_s
            ]
        return Verdict(ok=not stuck, why="; ".join(stuck))

    def samples(self) -> Iterable[Sample]:
        """Readiness as a metric, for `Exposition`."""
        yield Sample(metric=names.READY, value=1.0 if self.ready().ok else 0.0)

    def ready(self) -> Verdict:
        """True when the process is live, at least one condition was reported, and all of them hold."""
        live = self.live()
        if not live.ok:
            return live
        with self._lock:
            if not self._started:
                return Verdict(ok=False, why="starting")
            missing = [f"{name}: {why}" for name, why in self._conditions.items() if why]
        return Verdict(ok=not missing, why="; ".join(missing))
