"""PPO and DQN solve CartPole-v1 in separate processes, by the command that a user types."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.learning


def train(directory: Path, algorithm: str, *options: str) -> dict[str, Any]:
    """The summary of `rollstream train`."""
    command = [sys.executable, "-m", "rollstream_cli", "train", algorithm, "--env", "CartPole-v1", "--json", "out.json", *options]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    summary: dict[str, Any] = json.loads((directory / "out.json").read_text())
    return summary


def assert_counters_add_up(counters: dict[str, int]) -> None:
    """sampled = trained + stored + dropped + in flight, of which at most a few rollouts of two actors are in flight."""
    dropped = sum(value for name, value in counters.items() if name.startswith("env_steps_dropped"))
    settled = counters.get("env_steps_trained", 0) + counters.get("env_steps_stored", 0) + dropped
    in_flight = counters["env_steps_sampled"] - settled
    assert 0 <= in_flight <= 2 * 4 * 8 * 128


@pytest.mark.parametrize("seed", [0, 1])
def test_ppo_solves_cartpole(tmp_path: Path, seed: int) -> None:
    summary = train(tmp_path, "ppo", "--stop-return", "485", "--seed", str(seed))
    print(json.dumps({key: summary[key] for key in ("mean_return", "env_steps", "wall_s", "env_steps_per_s")}))
    assert summary["training_mean_return"] >= 485
    assert summary["mean_return"] >= 475 and summary["evaluation_episodes"] == 100
    assert summary["actors_contributed"] == 2 and summary["lag"] is not None
    assert_counters_add_up(summary["counters"])
    assert Path(summary["checkpoint"]).is_dir() and Path(summary["learning_curve"]).is_file()


@pytest.mark.parametrize("seed", [0, 1])
def test_dqn_solves_cartpole_over_a_table_that_keeps_its_ratio(tmp_path: Path, seed: int) -> None:
    summary = train(tmp_path, "dqn", "--stop-return", "475", "--seed", str(seed))
    print(json.dumps({key: summary[key] for key in ("mean_return", "env_steps", "wall_s", "env_steps_per_s")}))
    assert summary["training_mean_return"] >= 475
    assert summary["actors_contributed"] == 2
    assert_counters_add_up(summary["counters"])
    table = summary["tables"]["replay"]
    inserted, sampled = table["inserted"], table["sampled"]
    ratio, min_items, tolerance = 8.0, 1_000, 2_000  # the defaults of DqnConfig
    assert abs(inserted * ratio - sampled - min_items * ratio) <= tolerance
    assert table["items"] == min(inserted, table["max_items"])
