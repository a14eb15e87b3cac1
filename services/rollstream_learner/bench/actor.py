"""An actor's process until it has acted once: how long, and how much memory. It is a process of another service, so it is only started."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import Any

__all__ = ["measure_actor"]

TIMEOUT_S = 60.0


def measure_actor(*, repeats: int) -> dict[str, Any]:
    """Seconds from the start of the process until it has acted, and its resident memory then; medians."""
    runs = [_once() for _ in range(repeats)]
    return {name: round(statistics.median(run[name] for run in runs), 3) for name in ("ready_s", "rss_mb")}


def _once() -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "rollstream_actor.ready"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found
