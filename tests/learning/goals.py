"""Learning goals: which return an algorithm reaches, where, within how many environment steps. One YAML file for each algorithm.

goals/ppo.yaml ─▶ Goal ─▶ `rollstream train` in a folder of its own ─▶ Attempt (steps, seconds, curve) ─▶ docs/learning/ppo.json

A file is a list of goals:

    - env: CartPole-v1
      settings: {learning_rate: 1.0e-3}      # of the algorithm
      spec: {actors: 2, envs_per_actor: 8}   # any other field of the experiment, also nested, e.g. environment: {kwargs: {}}
      goal_return: 475
      limit_steps: 300000
      seeds: [0, 1, 2]
      short: true                            # with its first seed it runs in CI
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from rollstream.config import Frozen, load

__all__ = ["GOALS", "Attempt", "Goal", "attempt", "goals_of", "proven_algorithms"]

GOALS = Path(__file__).parent / "goals"
ROOT = Path(__file__).parents[2]
CURVE_POINTS = 150


class Goal(Frozen):
    """One goal: every seed reaches `goal_return` within `limit_steps`."""

    env: str
    """Id of the environment."""
    name: str = ""
    """Tells goals in the same environment apart, e.g. `dueling`; empty for the plain one."""
    algorithm: str = ""
    """Name in the registry; empty: the name of the file."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the algorithm that are not defaults."""
    spec: dict[str, Any] = Field(default_factory=dict)
    """Other fields of the experiment."""
    goal_return: float
    """Mean return to reach: of the last 100 training episodes, or of the evaluation."""
    measured_by: Literal["training", "evaluation"] = "training"
    """`training` ends the run once the goal is reached; `evaluation` (offline algorithms) runs to the end of `spec.stop`."""
    limit_steps: int = Field(ge=0)
    """Environment steps within which it must be reached; 0 for an algorithm that takes none."""
    limit_s: float = Field(default=900.0, gt=0)
    """Seconds after which an attempt is given up, whatever the machine."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of which every one must reach it."""
    short: bool = False
    """Its first seed runs in CI; below a minute on a quiet machine."""
    prepare: str = ""
    """`module:function`, called with the run's folder before training, e.g. to write a data set; it may return settings that
    hold the paths of what it wrote."""
    command: tuple[str, ...] = ()
    """More arguments for `rollstream train`."""
    source: str = ""
    """Where the number comes from, when it is a published one."""

    @property
    def label(self) -> str:
        """`CartPole-v1`, or `CartPole-v1 (dueling)`."""
        return f"{self.env} ({self.name})" if self.name else self.env


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of one goal with one seed.

    Attributes:
        steps: environment steps until the goal was reached, or until it was given up.
        wall_s: seconds of training.
        training_return: mean of the last 100 training episodes in the end. evaluation_return: of greedy episodes; None without.
        curve: pairs of environment steps and mean return of the last 100 training episodes.
        trouble: why there is no result; empty when there is one.
    """

    seed: int
    reached: bool
    steps: int
    wall_s: float
    training_return: float | None
    evaluation_return: float | None
    curve: list[list[float]]
    trouble: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def proven_algorithms() -> list[str]:
    """Names of all files of goals."""
    return sorted(file.stem for file in GOALS.glob("*.yaml"))


def goals_of(algorithm: str) -> list[Goal]:
    """The goals in the file of `algorithm`, in its order."""
    file = GOALS / f"{algorithm}.yaml"
    if not file.exists():
        raise SystemExit(
            f"no goals for {algorithm!r}: write {file.relative_to(ROOT)}; there are {', '.join(proven_algorithms())}"
        )
    listed = yaml.safe_load(file.read_text(encoding="utf-8"))
    goals = [load(Goal, entry, what=f"goal {number} of {algorithm}") for number, entry in enumerate(listed)]
    return [goal if goal.algorithm else goal.model_copy(update={"algorithm": algorithm}) for goal in goals]


def attempt(goal: Goal, *, seed: int, folder: Path) -> Attempt:
    """Train for `goal` with `seed` in the empty `folder`, by the command that a user types."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = _spec(goal, seed=seed, prepared=_prepare(goal, folder))
    (folder / "experiment.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "rollstream_cli",
        "train",
        "--file",
        "experiment.yaml",
        "--json",
        "summary.json",
        *goal.command,
    ]
    try:
        done = subprocess.run(
            command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False, timeout=goal.limit_s
        )
    except subprocess.TimeoutExpired:
        return _failed(seed, f"not within {goal.limit_s:.0f} s")
    if done.returncode != 0:
        return _failed(seed, (done.stderr or done.stdout).strip()[-2_000:])
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    reports = folder / "runs" / summary["experiment"] / "reports.jsonl"
    return result_of(goal, summary, _read_curve(reports), seed=seed)


def result_of(goal: Goal, summary: Mapping[str, Any], curve: list[list[float]], *, seed: int) -> Attempt:
    """What the summary of a run means for `goal`."""
    evaluated = summary["mean_return"] if summary["evaluation_episodes"] else None
    value = summary["training_mean_return"] if goal.measured_by == "training" else evaluated
    steps = int(summary["env_steps"])
    return Attempt(
        seed=seed,
        reached=value is not None and value >= goal.goal_return and steps <= goal.limit_steps,
        steps=steps,
        wall_s=round(float(summary["wall_s"]), 1),
        training_return=_rounded(summary["training_mean_return"]),
        evaluation_return=_rounded(evaluated),
        curve=thinned(curve, points=CURVE_POINTS),
    )


def thinned(curve: list[list[float]], *, points: int) -> list[list[float]]:
    """At most about `points` of the curve, the last one among them."""
    stride = max(1, -(-len(curve) // points))
    kept = curve[::stride]
    return kept if not curve or kept[-1] == curve[-1] else [*kept, curve[-1]]


def _spec(goal: Goal, *, seed: int, prepared: Mapping[str, Any]) -> dict[str, Any]:
    stop: dict[str, Any] = {"env_steps": goal.limit_steps} if goal.limit_steps else {}
    if goal.measured_by == "training":
        stop["mean_return"] = goal.goal_return
    base: dict[str, Any] = {
        "algorithm": goal.algorithm,
        "environment": {"id": goal.env},
        "seed": seed,
        "settings": {**goal.settings, **prepared},
        "stop": stop,
    }
    return _merged(base, goal.spec)


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(base)
    for name, value in over.items():
        inner = made.get(name)
        made[name] = _merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return made


def _prepare(goal: Goal, folder: Path) -> Mapping[str, Any]:
    if not goal.prepare:
        return {}
    module, _, function = goal.prepare.partition(":")
    return getattr(importlib.import_module(module), function)(folder.absolute()) or {}


def _environment() -> dict[str, str]:
    """The user's, with this repository's root on the path, so that goals may have environments of their own below `tests`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROLLSTREAM_")}
    paths = [str(ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}


def _read_curve(reports: Path) -> list[list[float]]:
    lines = [json.loads(line) for line in reports.read_text(encoding="utf-8").splitlines()]
    return [[line["env_steps"], round(line["mean_return"], 2)] for line in lines if line["mean_return"] is not None]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 2)


def _failed(seed: int, trouble: str) -> Attempt:
    return Attempt(
        seed=seed, reached=False, steps=0, wall_s=0.0, training_return=None, evaluation_return=None, curve=[], trouble=trouble
    )
