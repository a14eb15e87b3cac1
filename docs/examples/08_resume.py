"""8. Resuming: a run that was stopped goes on from its last checkpoint, with its counters, schedules and random numbers.

    python docs/examples/08_resume.py

Each command starts its own cell on this machine (an embedded server, control, learner, actors) and leaves nothing running.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def rollstream(*arguments: str, cwd: Path) -> None:
    """The command `rollstream`, as in a terminal; errors end this program."""
    print("$ rollstream", *arguments)
    subprocess.run([sys.executable, "-m", "rollstream_cli", *arguments], cwd=cwd, check=True)


def summary(folder: Path) -> dict[str, Any]:
    """What the last command wrote."""
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


def main() -> None:
    """Train until the first report past 10,000 steps, then on until one that is past twice as many."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rollstream("train", "ppo", "--env", "CartPole-v1", "--stop-steps", "10000", "--json", "summary.json", cwd=folder)
        first = summary(folder)
        run = f"runs/{first['experiment']}"
        rollstream("checkpoint", "list", run, cwd=folder)
        rollstream("resume", run, "--stop-steps", str(2 * first["env_steps"]), "--json", "summary.json", cwd=folder)
        second = summary(folder)
    print(f"first  {first['env_steps']:,} steps, {first['updates']:,} updates, return {first['training_mean_return']:.0f}")
    print(f"then   {second['env_steps']:,} steps, {second['updates']:,} updates, return {second['training_mean_return']:.0f}")


if __name__ == "__main__":
    main()
