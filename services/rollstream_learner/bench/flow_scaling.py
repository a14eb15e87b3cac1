"""More actors: processes whose environments sleep, so that cores are not what limits them. Sampled steps a second against one actor's."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import psutil

from rollstream.algorithms.registry import known
from rollstream.errors import ConfigError

__all__ = ["measure_scaling", "numbers_of_actors"]

ENVIRONMENT = "rollstream_learner.bench.peers.environments:SleepingEnvironment"
STEP_S = 0.005
ROLLOUT_STEPS = 64
TIMEOUT_S = 180.0
ASYNCHRONOUS = ("impala", "appo")
"""Flows in which nobody waits for the slowest; the first that there is is measured, PPO if there is none."""


def numbers_of_actors(listed: str) -> tuple[int, ...]:
    """The numbers in `1,2,4`; the first is what others are compared with."""
    parts = listed.split(",")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--actors takes whole numbers above 0, separated by commas, got {listed!r}; e.g. 1,4,16")
    return tuple(int(part) for part in parts)


def measure_scaling(*, seconds: float, actors: Sequence[int], repeats: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Environment steps a second by number of actor processes; medians of `repeats` runs that take turns."""
    algorithm = next((name for name in ASYNCHRONOUS if name in known()), "ppo")
    found: dict[int, list[dict[str, Any]]] = {count: [] for count in actors}
    for _ in range(repeats):
        for count in actors:
            run = _run(algorithm, count, seconds=seconds)
            found[count].append(run)
            say(f"{count} actors: {run['env_steps_per_s']:,.0f} steps/s, {run['cores_used']:.2f} cores of ours")
    by_count = {str(count): _median(runs) for count, runs in found.items()}
    first = by_count[str(actors[0])]["env_steps_per_s"] / actors[0]
    for count in actors:
        figures = by_count[str(count)]
        figures["share_of_linear"] = round(figures["env_steps_per_s"] / (count * first), 4)
    return {"algorithm": algorithm, "step_ms": 1e3 * STEP_S, "actors": by_count}


def _run(algorithm: str, actors: int, *, seconds: float) -> dict[str, Any]:
    """`rollstream bench train`, as a user would start it."""
    command = [sys.executable, "-m", "rollstream_cli", "bench", "train", "--algo", algorithm, "--env", ENVIRONMENT]
    command += ["--actors", str(actors), "--envs-per-actor", "1", "--seconds", str(seconds), "--warm-up", "3", "--json", "-"]
    command += ["--set", f"rollout_steps={ROLLOUT_STEPS}"]
    busy = _busy_s()
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=dict(os.environ))
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise ConfigError(f"{actors} actors could not be measured: {lines[-1] if lines else done.returncode}")
    measured: dict[str, Any] = json.loads(done.stdout)
    took = _busy_s()
    return measured | {"machine_cores_busy": round((took[0] - busy[0]) / max(1e-9, took[1] - busy[1]) * os.cpu_count(), 2)}  # type: ignore[operator]


def _busy_s() -> tuple[float, float]:
    """Seconds that cores were busy, and were there, since the machine started."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    total = sum(times[:8])
    return total - idle, total


def _median(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    names = ("env_steps_per_s", "cores_used", "rss_total_mb", "start_to_first_update_s", "machine_cores_busy")
    return {name: round(statistics.median(run[name] for run in runs), 2) for name in names}
