"""Times of functions that are run in turn, so that a machine that slows down slows them all down."""

from __future__ import annotations

import resource
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rollstream.clock import Clock

__all__ = ["Pace", "Timing", "alternate", "cpu_s"]

BLOCK_S = 0.002
"""Calls are timed in blocks of about this length, so that reading the clock costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Attributes:
    seconds: of each run of a candidate.
    repeats: runs of each; the median run counts.
    """

    seconds: float
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Microseconds a call: the median over runs of their median block, and of their tenth-percentile block."""

    median_us: float
    p10_us: float
    calls: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def alternate(candidates: Mapping[str, Callable[[], object]], *, pace: Pace, clock: Clock) -> dict[str, Timing]:
    """Run every candidate for `pace.seconds`, one after the other, `pace.repeats` times."""
    block = {name: _calls_in_block(call, clock) for name, call in candidates.items()}
    medians: dict[str, list[float]] = {name: [] for name in candidates}
    lows: dict[str, list[float]] = {name: [] for name in candidates}
    total = dict.fromkeys(candidates, 0)
    for _ in range(pace.repeats):
        for name, call in candidates.items():
            times = _run(call, calls=block[name], seconds=pace.seconds, clock=clock)
            medians[name].append(statistics.median(times))
            lows[name].append(sorted(times)[len(times) // 10])
            total[name] += block[name] * len(times)
    return {
        name: Timing(
            median_us=round(1e6 * statistics.median(medians[name]), 2),
            p10_us=round(1e6 * statistics.median(lows[name]), 2),
            calls=total[name],
        )
        for name in candidates
    }


def cpu_s() -> float:
    """Seconds that processors have worked for this process, in all of its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _calls_in_block(call: Callable[[], object], clock: Clock) -> int:
    for _ in range(3):
        call()
    start_s = clock.monotonic_s()
    call()
    return max(1, round(BLOCK_S / max(1e-7, clock.monotonic_s() - start_s)))


def _run(call: Callable[[], object], *, calls: int, seconds: float, clock: Clock) -> list[float]:
    """Seconds a call in each block."""
    times: list[float] = []
    end_s = clock.monotonic_s() + seconds
    while not times or clock.monotonic_s() < end_s:
        start_s = clock.monotonic_s()
        for _ in range(calls):
            call()
        times.append((clock.monotonic_s() - start_s) / calls)
    return times
