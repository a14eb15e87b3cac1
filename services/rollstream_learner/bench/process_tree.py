"""What a command and all processes that it starts use: memory counted whole (RSS) and shared out (PSS)."""

from __future__ import annotations

import threading
from pathlib import Path

import psutil

__all__ = ["TreeMeter", "cores_busy"]

EVERY_S = 0.5
MB = 2.0**20


class TreeMeter:
    """`with TreeMeter(pid) as meter:` looks until the block ends.

    Attributes:
        rss_mb, pss_mb: sums over all processes, at their highest.
        processes: most at one time.
    """

    def __init__(self, pid: int) -> None:
        self.rss_mb = 0.0
        self.pss_mb = 0.0
        self.processes = 0
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tree meter", daemon=True)

    def __enter__(self) -> TreeMeter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._look()

    def _look(self) -> None:
        rss = pss = count = 0
        try:
            family = [psutil.Process(self._pid), *psutil.Process(self._pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in family:
            try:
                rss += process.memory_info().rss
                pss += _pss_bytes(process.pid)
                count += 1
            except (psutil.Error, OSError):
                continue
        self.rss_mb = max(self.rss_mb, rss / MB)
        self.pss_mb = max(self.pss_mb, pss / MB)
        self.processes = max(self.processes, count)


def _pss_bytes(pid: int) -> int:
    """0 where the kernel does not tell."""
    path = Path(f"/proc/{pid}/smaps_rollup")
    if not path.exists():
        return 0
    return next((int(line.split()[1]) * 1024 for line in path.read_text().splitlines() if line.startswith("Pss:")), 0)


def cores_busy() -> tuple[float, float]:
    """Seconds for which this machine's cores were busy, and for which they were there, since it started."""
    times = psutil.cpu_times()
    total = sum(times[:8])
    return total - times.idle - getattr(times, "iowait", 0.0), total
