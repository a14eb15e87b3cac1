"""What the processes of a cell cost: memory now and at most, processor time in all."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psutil

from rollstream.clock import Clock

__all__ = ["UsageMeter", "UsageSample"]

MB = 2.0**20


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSample:
    """One look at all processes."""

    at_s: float
    cpu_s: float
    """Processor seconds of all processes so far, those that have ended included."""
    rss_mb: Mapping[str, float]
    """Member -> resident memory of its process and of those it started; `cli` is the command itself."""

    @property
    def total_mb(self) -> float:
        return sum(self.rss_mb.values())


class UsageMeter:
    """Samples when asked, and remembers the sample with the most memory."""

    def __init__(self, processes: Callable[[], Mapping[str, int]], *, clock: Clock) -> None:
        """
        Args:
            processes: member -> process id of what runs now.
        """
        self._processes = processes
        self._clock = clock
        self.peak: UsageSample | None = None

    def sample(self) -> UsageSample:
        """Look at all processes now."""
        own = psutil.Process()
        rss_mb = {"cli": own.memory_info().rss / MB}
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        times = own.cpu_times()
        cpu_s = times.user + times.system + ended.ru_utime + ended.ru_stime
        for member, pid in self._processes().items():
            try:
                process = psutil.Process(pid)
                family = [process, *process.children(recursive=True)]
                rss_mb[member] = sum(_rss_bytes(one) for one in family) / MB
                cpu_s += sum(_cpu_s(one) for one in family)
            except psutil.NoSuchProcess:
                continue
        sample = UsageSample(at_s=self._clock.monotonic_s(), cpu_s=cpu_s, rss_mb=rss_mb)
        if self.peak is None or sample.total_mb > self.peak.total_mb:
            self.peak = sample
        return sample


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
