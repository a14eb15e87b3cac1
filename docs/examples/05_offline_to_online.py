"""5. From recorded data to the environment: CQL learns from what a controller once did, then DQN goes on from there by acting.

    python docs/examples/05_offline_to_online.py

The recording is a NumPy archive; `rollstream replay dump` and Minari give others. CQL has no actors: it never touches the environment but
to evaluate. A checkpoint of another algorithm with the same networks gives what it learned; epsilon begins low, so that DQN uses it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np


def record(path: Path, *, episodes: int) -> float:
    """Play CartPole-v1 by a simple controller that errs in two of five steps; returns its mean return."""
    generator, made = np.random.default_rng(0), gymnasium.make("CartPole-v1")
    columns: dict[str, list[Any]] = {name: [] for name in ("observation", "action", "reward", "terminated", "truncated")}
    for number in range(episodes):
        observation, _ = made.reset(seed=number)
        ended = False
        while not ended:
            x, speed, angle, turn = observation.tolist()
            steady = int(0.02 * x + 0.06 * speed + angle + 0.3 * turn > 0)
            action = steady if generator.random() > 0.4 else int(generator.integers(2))
            later, reward, terminated, truncated, _ = made.step(action)
            for name, value in zip(columns, (observation, action, reward, terminated, truncated), strict=True):
                columns[name].append(value)
            observation, ended = later, terminated or truncated
    np.savez(path, **{name: np.asarray(values) for name, values in columns.items()})
    return len(columns["reward"]) / episodes


def train(*arguments: str, folder: Path) -> dict[str, Any]:
    """`rollstream train ...`; its summary."""
    print("$ rollstream train", *arguments)
    command = [sys.executable, "-m", "rollstream_cli", "train", *arguments, "--env", "CartPole-v1", "--json", "summary.json"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


def main() -> None:
    """Record, learn offline, go on online."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recorded = record(folder / "play.npz", episodes=20)
        data = ("--set", f"offline={folder / 'play.npz'}")
        offline = train("cql", *data, "--actors", "0", "--set", "stop.updates=600", folder=folder)
        start = ("--from-checkpoint", f"runs/{offline['experiment']}")
        online = train("dqn", *start, "--set", "epsilon_start=0.05", "--stop-steps", "5000", folder=folder)
    print(f"recorded {recorded:.0f}, offline {offline['mean_return']:.0f}, online {online['mean_return']:.0f}")


if __name__ == "__main__":
    main()
