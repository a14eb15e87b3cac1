"""Proves that an algorithm learns, and writes down how: `python -m tests.learning.prove ALGORITHM [--full] [--seed N] [--goal TEXT]`.

Trains through `rollstream train` for each of the algorithm's goals (`goals/<algorithm>.yaml`) and writes `docs/learning/<algorithm>.json`
after every attempt, from which `make docs` makes the tables and curves of docs/algorithms.md. Without `--full`: the short goal with its
first seed. Exit code 1 when an attempt has not reached its goal.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.learning.goals import ROOT, Attempt, Goal, attempt, goals_of

__all__ = ["RESULTS", "facts_of", "main", "record"]

RESULTS = ROOT / "docs" / "learning"
GOAL_FIELDS = ("env", "name", "algorithm", "settings", "spec", "goal_return", "measured_by", "limit_steps", "source")


def main(arguments: Sequence[str]) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.learning.prove", description="prove that an algorithm learns")
    parser.add_argument("algorithm", help="name of a file in tests/learning/goals")
    parser.add_argument("--full", action="store_true", help="all goals, all seeds")
    parser.add_argument("--seed", type=int, help="this seed only")
    parser.add_argument("--goal", default="", help="goals whose label contains this text only, e.g. Acrobot")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--keep", type=Path, help="folder in which runs are kept, for looking into them")
    chosen = parser.parse_args(arguments)
    file = chosen.out / f"{chosen.algorithm}.json"
    goals = [goal for goal in goals_of(chosen.algorithm) if chosen.goal in goal.label]
    every = chosen.full or bool(chosen.goal)
    failed = 0
    for goal in goals if every else [goal for goal in goals if goal.short]:
        seeds = [chosen.seed] if chosen.seed is not None else list(goal.seeds if every else goal.seeds[:1])
        for seed in seeds:
            came = _attempt(goal, seed=seed, keep=chosen.keep)
            _tell(goal, came)
            if not came.trouble:  # given up by the clock: that says nothing about steps
                record(file, algorithm=chosen.algorithm, goals=goals_of(chosen.algorithm), goal=goal, came=came)
            failed += not came.reached
    return 1 if failed else 0


def record(file: Path, *, algorithm: str, goals: Sequence[Goal], goal: Goal, came: Attempt) -> None:
    """Put `came` into the file: in the place of an earlier attempt with its seed. What was measured for a goal that has changed since
    is dropped, and the others stay, in the order of `goals`."""
    old = json.loads(file.read_text(encoding="utf-8"))["goals"] if file.exists() else []
    listed = []
    for entry in goals:
        facts = facts_of(entry)
        before = next((found["attempts"] for found in old if {name: found.get(name) for name in GOAL_FIELDS} == facts), [])
        if entry == goal:
            before = sorted(
                [*(done for done in before if done["seed"] != came.seed), came.to_json()], key=lambda done: done["seed"]
            )
        if before:
            listed.append({**facts, "attempts": before})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_as_text({"algorithm": algorithm, "goals": listed}), encoding="utf-8")


def facts_of(goal: Goal) -> dict[str, Any]:
    """What a result is a result of; it is dropped when one of these changes."""
    data = goal.model_dump(mode="json")
    return {name: data[name] for name in GOAL_FIELDS}


def _as_text(document: dict[str, Any]) -> str:
    """JSON that can be read: curves on one line each."""
    text = json.dumps(document, indent=1)
    for attempts in (goal["attempts"] for goal in document["goals"]):
        for done in attempts:
            long = json.dumps(done["curve"], indent=1).replace("\n", "\n" + 5 * " ")
            text = text.replace(long, json.dumps(done["curve"], separators=(",", ":")))
    return text + "\n"


def _attempt(goal: Goal, *, seed: int, keep: Path | None) -> Attempt:
    if keep is not None:
        return attempt(goal, seed=seed, folder=keep / f"{goal.algorithm}-{goal.env.replace(':', '-')}-{goal.name}-{seed}")
    with tempfile.TemporaryDirectory(prefix="prove-") as folder:
        return attempt(goal, seed=seed, folder=Path(folder))


def _tell(goal: Goal, came: Attempt) -> None:
    word = "reached" if came.reached else "NOT reached"
    sys.stdout.write(
        f"{goal.algorithm} {goal.label} seed {came.seed}: {goal.goal_return:g} {word} after {came.steps:,} of {goal.limit_steps:,} "
        f"steps, {came.wall_s:.0f} s; training {came.training_return}, evaluation {came.evaluation_return}\n"
    )
    if came.trouble:
        sys.stdout.write(came.trouble + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
