"""A run of RLlib in a process of its own, seen from outside with the same instruments as ours."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollstream.clock import Clock
from rollstream_learner.bench.process_tree import TreeMeter, cores_busy
from rollstream_learner.bench.training_run import GOAL, Seen

__all__ = ["SETTINGS", "RllibRun", "RllibSetting"]

SCRIPT = Path(__file__).parent / "peers" / "rllib_train.py"
LONGER_S = 120.0
"""For its start and its end, beside the seconds of training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RllibSetting:
    """Runners, environments of each (0: RLlib's default), learner processes (0: the driver learns)."""

    runners: int
    envs: int
    learners: int


SETTINGS: Mapping[str, Mapping[str, RllibSetting]] = {
    "ppo": {"stock": RllibSetting(runners=2, envs=0, learners=0), "best": RllibSetting(runners=2, envs=8, learners=0)},
    "impala": {"stock": RllibSetting(runners=2, envs=0, learners=1), "best": RllibSetting(runners=2, envs=8, learners=0)},
    "appo": {"stock": RllibSetting(runners=2, envs=0, learners=1), "best": RllibSetting(runners=2, envs=8, learners=0)},
    "dqn": {"stock": RllibSetting(runners=0, envs=0, learners=0), "best": RllibSetting(runners=0, envs=8, learners=0)},
}
"""As RLlib comes (its advice: IMPALA's learner is a process of its own), and the fastest that we found for it on two cores."""


class RllibRun:
    """One run."""

    def __init__(self, python: Path, algorithm: str, setting: RllibSetting, *, seconds: float, goal: float, clock: Clock) -> None:
        words = (algorithm, setting.runners, setting.envs, setting.learners, seconds, goal)
        self._command = [str(python), str(SCRIPT), *map(str, words)]
        self._seconds = seconds
        self._clock = clock
        self.seen: list[Seen] = []

    def run(self, *, broken: bool = False) -> None:
        """Start it, read its results as they come, and wait for its end."""
        before, start_s = cores_busy(), self._clock.monotonic_s()
        command = [*self._command, *(["broken"] if broken else [])]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ), text=True
        ) as process:
            assert process.stdout is not None, "it is a pipe"
            watchdog = threading.Timer(self._seconds + LONGER_S, process.terminate)
            watchdog.start()
            try:
                with TreeMeter(process.pid) as self.meter:
                    for line in process.stdout:
                        self.seen.append(Seen(after_s=self._clock.monotonic_s() - start_s, report=json.loads(line)))
            finally:
                watchdog.cancel()
                process.terminate()
        self.ended_after_s = self._clock.monotonic_s() - start_s
        self.code = process.returncode
        after = cores_busy()
        self.machine_cores_busy = (after[0] - before[0]) / max(1e-9, after[1] - before[1]) * (os.cpu_count() or 1)

    def figures(self) -> dict[str, Any]:
        """Rates without the first result, and times from the start of the process; under the names of `TrainingRun.figures`."""
        if len(self.seen) < 2:
            return {"failed": [f"{len(self.seen)} results, exit code {self.code}"]}
        first, last = self.seen[0].report, self.seen[-1].report
        took_s = last["wall_s"] - first["wall_s"]
        reached = next((one for one in self.seen if (one.report["mean_return"] or 0.0) >= GOAL), None)
        sampled = last["env_steps"] - first["env_steps"]
        rows = last["rows_trained"] - first["rows_trained"]
        return {
            "env_steps_per_s": round(sampled / took_s, 1),
            "env_steps_trained_per_s": round(min(sampled, rows) / took_s, 1),
            "updates_per_s": round(rows / last["rows_per_update"] / took_s, 1),
            "measured_s": round(took_s, 2),
            "first_result_after_s": round(self.seen[0].after_s, 2),
            "goal_after_training_s": None if reached is None else round(reached.report["wall_s"], 2),
            "goal_after_start_s": None if reached is None else round(reached.after_s, 2),
            "goal_env_steps": None if reached is None else int(reached.report["env_steps"]),
            "best_mean_return": max((one.report["mean_return"] or 0.0 for one in self.seen), default=0.0),
            "env_steps": int(last["env_steps"]),
            "trained_as_told_per_env_step": round(last["env_steps_trained_as_told"] / max(1.0, last["env_steps"]), 2),
            "rss_mb": round(self.meter.rss_mb),
            "pss_mb": round(self.meter.pss_mb),
            "processes": self.meter.processes,
            "machine_cores_busy": round(self.machine_cores_busy, 2),
        }
