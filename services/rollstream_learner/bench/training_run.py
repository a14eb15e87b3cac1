"""A run of `rollstream train` as a user starts it, seen from outside: when which report came, how fast it was, what it used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollstream.clock import Clock
from rollstream.errors import ConfigError
from rollstream.metrics import env_steps_in_flight
from rollstream_learner.bench.process_tree import TreeMeter, cores_busy

__all__ = ["Seen", "TrainingRun"]

LOOK_EVERY_S = 0.02
GOAL = 450.0
LONGEST_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A report, and how many seconds after the start of the command's process it could be read."""

    after_s: float
    report: Mapping[str, Any]


class TrainingRun:
    """One run.

    Args:
        seconds: of training, by the learner's clock; the run ends then (or with `goal`).
        goal: mean return of 100 training episodes at which it ends; None: it goes on.
    """

    def __init__(
        self, algorithm: str, *, environment: str, seconds: float, folder: Path, clock: Clock, goal: float | None = None
    ) -> None:
        self._command = [sys.executable, "-m", "rollstream_cli", "train", algorithm, "--env", environment]
        self._command += [
            "--set",
            "evaluation_episodes=0",
            "--set",
            f"stop.wall_s={seconds:g}",
            "--json",
            str(folder / "out.json"),
        ]
        self._command += ["--runs-dir", str(folder / "runs")]
        if goal is not None:
            self._command += ["--stop-return", str(goal)]
        self.folder = folder
        self._clock = clock
        self.seen: list[Seen] = []
        self.ended_after_s = 0.0
        self.code = 0
        self.words = ""

    def run(self, extra: Sequence[str] = (), *, python_path: Path | None = None, words: str = "") -> None:
        """Start it, read its reports as they come, and wait for its end.

        Args:
            python_path: a folder with modules of the user's.
            words: when they are shown first is remembered in `words_wall_s`.
        """
        if (self.folder / "runs").exists():
            raise ConfigError(
                f"{self.folder} holds the reports of another run, which would count as this one's; give it a folder of its own"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        before = cores_busy()
        start_s = self._clock.monotonic_s()
        environment = dict(os.environ)
        if python_path is not None:
            environment["PYTHONPATH"] = os.pathsep.join([str(python_path), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.words_wall_s: float | None = None
        file = self.folder / "words"
        with file.open("w") as shown:
            process = subprocess.Popen([*self._command, *extra], stdout=shown, stderr=shown, env=environment)
            try:
                with TreeMeter(process.pid) as self.meter:
                    while process.poll() is None and self._clock.monotonic_s() - start_s < LONGEST_S:
                        self._read(self._clock.monotonic_s() - start_s)
                        if words and self.words_wall_s is None and words in file.read_text():
                            self.words_wall_s = self._clock.wall_s()
                        self._clock.sleep(LOOK_EVERY_S)
            finally:
                if process.poll() is None:
                    process.terminate()
                self.code = process.wait()
        self.ended_after_s = self._clock.monotonic_s() - start_s
        self.ended_wall_s = self._clock.wall_s()
        self._read(self.ended_after_s)
        after = cores_busy()
        self.machine_cores_busy = (after[0] - before[0]) / max(1e-9, after[1] - before[1]) * (os.cpu_count() or 1)
        self.words = file.read_text()
        if words and self.words_wall_s is None and words in self.words:  # said with its last breath
            self.words_wall_s = self.ended_wall_s

    def figures(self, *, warm_up_s: float) -> dict[str, Any]:
        """Rates from the first report after `warm_up_s` of training to the last, and times from the start of the process."""
        trained = [one for one in self.seen if one.report["updates"] > 0]
        if len(trained) < 2:
            return {"failed": self.words.strip().splitlines()[-1:] or [str(self.code)]}
        steady = [one for one in trained if one.report["wall_s"] >= warm_up_s]
        first, last = (steady if len(steady) >= 2 else trained)[0].report, trained[-1].report
        took_s = last["wall_s"] - first["wall_s"]
        reached = next((one for one in trained if (one.report["mean_return"] or 0.0) >= GOAL), None)
        counters = last["counters"]
        rates = {
            name: round((last[key] - first[key]) / took_s, 1)
            for name, key in (
                ("env_steps_per_s", "env_steps"),
                ("env_steps_trained_per_s", "env_steps_trained"),
                ("updates_per_s", "updates"),
            )
        }
        return {
            **rates,
            "measured_s": round(took_s, 2),
            "first_result_after_s": round(trained[0].after_s, 2),
            "goal_after_training_s": None if reached is None else round(reached.report["wall_s"], 2),
            "goal_after_start_s": None if reached is None else round(reached.after_s, 2),
            "goal_env_steps": None if reached is None else reached.report["env_steps"],
            "best_mean_return": max((one.report["mean_return"] or 0.0 for one in trained), default=0.0),
            "env_steps": last["env_steps"],
            "env_steps_in_flight": env_steps_in_flight(counters),
            "trained_as_told_per_env_step": round(last["env_steps_trained"] / max(1, last["env_steps"]), 4),
            "rss_mb": round(self.meter.rss_mb),
            "pss_mb": round(self.meter.pss_mb),
            "processes": self.meter.processes,
            "machine_cores_busy": round(self.machine_cores_busy, 2),
        }

    def _read(self, after_s: float) -> None:
        for file in (self.folder / "runs").glob("*/reports.jsonl"):
            lines = file.read_text().splitlines()
            for line in lines[len(self.seen) :]:
                if line.endswith("}"):
                    self.seen.append(Seen(after_s=after_s, report=json.loads(line)))
