"""All parts of `rollstream bench train --against rllib`: ours and RLlib's training on CartPole-v1, by turns, in the same run.

    ppo, impala, appo, dqn   rates, memory and the first result: ours as it comes, RLlib as it comes and at its best
    goal                     PPO until a mean return of 450
    busy                     PPO beside another program that takes a core
    breaks                   PPO on an environment that raises

`python -m rollstream_learner.bench.against`
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollstream.algorithms.registry import known
from rollstream.clock import Clock, SystemClock
from rollstream_learner.bench.against_targets import TARGETS
from rollstream_learner.bench.breaking import measure_breaking
from rollstream_learner.bench.rllib_run import SETTINGS, RllibRun
from rollstream_learner.bench.suite import Suite, say
from rollstream_learner.bench.training_run import GOAL, TrainingRun

__all__ = ["PARTS", "main"]

ALGORITHMS = ("ppo", "impala", "appo", "dqn")
PARTS = (*ALGORITHMS, "goal", "busy", "breaks")
ENVIRONMENT = "CartPole-v1"
WARM_UP_S = 5.0
GOAL_WITHIN_S = 120.0
BREAKS_WITHIN_S = 90.0
BUSY = "while True: pass"


def main(arguments: Sequence[str]) -> int:
    """Measure, and print or write one JSON document; returns the exit code."""
    suite = Suite(
        command="rollstream bench train --against rllib",
        parts=PARTS,
        targets=TARGETS,
        measure=_part,
        seconds=20.0,
        repeats=1,
        options=_options,
    )
    return suite.main(arguments)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rllib-python", type=Path, metavar="PATH", help="a Python that has ray[rllib]; none: ours alone")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of ours, in every part")


def _part(part: str, options: argparse.Namespace, folder: Path) -> Any:
    bench = _Against(
        python=options.rllib_python,
        seconds=options.seconds,
        repeats=options.repeats,
        folder=folder / part,  # parts run the same algorithms
        clock=SystemClock(),
        more=[word for setting in options.set for word in ("--set", setting)],
    )
    if part in ALGORITHMS:
        return bench.algorithm(part)
    measured: Mapping[str, Callable[[], Any]] = {"goal": bench.goal, "busy": bench.busy, "breaks": bench.breaks}
    return measured[part]()


@dataclass(slots=True, kw_only=True)
class _Against:
    python: Path | None
    seconds: float
    repeats: int
    folder: Path
    clock: Clock
    more: Sequence[str]
    runs: int = 0

    def algorithm(self, name: str) -> dict[str, Any]:
        """Ours and both settings of RLlib's."""
        found: dict[str, list[dict[str, Any]]] = {}
        for _ in range(self.repeats):
            if name in known():
                found.setdefault("ours", []).append(self._ours(name))
            for setting in ("stock", "best") if self.python is not None else ():
                found.setdefault(setting, []).append(self._theirs(name, setting))
        medians: dict[str, Any] = {who: _median(runs) for who, runs in found.items()}
        return medians | _ratios(medians)

    def goal(self) -> dict[str, Any]:
        """Seconds to the goal, ours and RLlib's best."""
        ours = self._ours("ppo", seconds=GOAL_WITHIN_S, goal=GOAL)
        found = {"ours": ours}
        if self.python is not None:
            found["best"] = self._theirs("ppo", "best", seconds=GOAL_WITHIN_S, goal=GOAL)
        return found

    def busy(self) -> dict[str, Any]:
        """Rates alone and beside a program that takes a core, and the share that is left."""
        measured: dict[str, Callable[[], dict[str, Any]]] = {"ours": lambda: self._ours("ppo")}
        if self.python is not None:
            measured["stock"] = lambda: self._theirs("ppo", "stock")
        found: dict[str, Any] = {}
        for who, run in measured.items():
            alone = run()
            with subprocess.Popen([sys.executable, "-c", BUSY]) as other:
                try:
                    beside = run()
                finally:
                    other.kill()
            found[who] = {"alone": alone, "beside": beside, "kept": _ratio(beside, alone, "env_steps_per_s")}
        return found

    def breaks(self) -> dict[str, Any]:
        """A bug of the user's: how soon it is told, what is shown, and when the command has ended."""
        self.runs += 1
        found: dict[str, Any] = {
            "ours": measure_breaking(
                folder=self.folder / f"breaks-{self.runs}", within_s=BREAKS_WITHIN_S, clock=self.clock, more=list(self.more)
            )
        }
        if self.python is not None:
            theirs = RllibRun(self.python, "ppo", SETTINGS["ppo"]["stock"], seconds=BREAKS_WITHIN_S, goal=0.0, clock=self.clock)
            theirs.run(broken=True)
            last = theirs.seen[-1].report if theirs.seen else {}
            found["stock"] = {
                "exit_code": theirs.code,
                "results_after_all_runners_died": sum(one.report["healthy_runners"] == 0 for one in theirs.seen),
                "healthy_runners": last.get("healthy_runners"),
                "ended_after_s": round(theirs.ended_after_s, 1),
            }
        return found

    def _ours(self, name: str, *, seconds: float | None = None, goal: float | None = None) -> dict[str, Any]:
        self.runs += 1
        run = TrainingRun(
            name,
            environment=ENVIRONMENT,
            seconds=seconds or WARM_UP_S + self.seconds,
            folder=self.folder / f"{name}-{self.runs}",
            clock=self.clock,
            goal=goal,
        )
        run.run(self.more)
        return self._told(f"{name}, ours", run.figures(warm_up_s=WARM_UP_S))

    def _theirs(self, name: str, setting: str, *, seconds: float | None = None, goal: float = 0.0) -> dict[str, Any]:
        assert self.python is not None, "asked for only with RLlib"
        run = RllibRun(self.python, name, SETTINGS[name][setting], seconds=seconds or self.seconds, goal=goal, clock=self.clock)
        run.run()
        return self._told(f"{name}, RLlib {setting}", run.figures())

    def _told(self, what: str, figures: dict[str, Any]) -> dict[str, Any]:
        if "failed" in figures:
            say(f"{what}: failed: {figures['failed']}")
        else:
            say(f"{what}: {figures['env_steps_trained_per_s']:,.0f} steps/s, {figures['updates_per_s']:,.0f} updates/s")
        return figures


def _median(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of each number; what is not a number in all runs is taken from the last."""
    whole = [run for run in runs if "failed" not in run]
    if not whole:
        return runs[-1]
    found = dict(whole[-1])
    for name in found:
        values = [run[name] for run in whole]
        if all(isinstance(value, (int, float)) for value in values):
            found[name] = statistics.median(values)
    return found


def _ratios(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    ours = found.get("ours", {})
    return {
        f"times_{setting}": {
            name: _ratio(ours, found[setting], name)
            for name in ("env_steps_per_s", "env_steps_trained_per_s", "updates_per_s", "rss_mb", "first_result_after_s")
        }
        for setting in ("stock", "best")
        if setting in found
    }


def _ratio(above: Mapping[str, Any], below: Mapping[str, Any], name: str) -> float | None:
    if not above.get(name) or not below.get(name):
        return None
    return round(float(above[name]) / float(below[name]), 3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
