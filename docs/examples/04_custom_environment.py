"""4. An environment of your own: a class with Gymnasium's interface, tried out, then trained in.

    python docs/examples/04_custom_environment.py

Environments are named, never passed: `module:Class`, and each actor makes its own copies. In a cell the module must be installed and
allowed: `ROLLSTREAM_ENVIRONMENT_MODULES=corridor`, or on this machine just `rollstream train ppo --env corridor:Corridor`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from corridor import Corridor

from rollstream.config import EnvironmentSpec, ExperimentSpec, load
from rollstream.envs import inspect_environment
from rollstream_cli.inline import run
from rollstream_cli.progress import describe_report

ENVIRONMENT = f"{Corridor.__module__}:{Corridor.__name__}"


def main() -> None:
    """Look at it as Rollstream sees it, then train PPO."""
    found = inspect_environment(EnvironmentSpec(id=ENVIRONMENT), allow=("corridor",))
    print("observation:", *found.observation_leaves, "action:", *found.action_leaves, sep="\n  ")
    document = {
        "algorithm": "ppo",
        "environment": {"id": ENVIRONMENT, "kwargs": {"length": 6}},
        "settings": {"rollout_steps": 64, "entropy_coefficient": 0.01},
        "stop": {"mean_return": 0.9, "env_steps": 40_000},
    }
    spec = load(ExperimentSpec, document, what="experiment")
    with tempfile.TemporaryDirectory() as runs:
        summary = run(spec, runs_dir=Path(runs), report=lambda report: print(describe_report(report)), allow=("corridor",))
    print(f"the shortest way earns 0.95; the greedy policy {summary['mean_return']:.2f}")


if __name__ == "__main__":
    main()
