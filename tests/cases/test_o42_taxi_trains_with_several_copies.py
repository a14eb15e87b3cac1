"""O42: a Discrete observation and several copies of the environment: every algorithm trains."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

TAXI = max(name for name in gymnasium.registry if name.startswith("Taxi-v"))
SHORT = {"ppo": ("rollout_steps=32",), "dqn": ("min_items=64",)}


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_o42_taxi_with_four_copies_trains(algorithm: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rollstream_cli", "train", algorithm, "--env", TAXI, "--inline", "--envs-per-actor", "4"]
    command += ["--stop-steps", "1000", "--set", "evaluation_episodes=0", "--json", "summary.json"]
    for setting in SHORT[algorithm]:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["env_steps"] >= 1000
    assert summary["updates"] > 0
