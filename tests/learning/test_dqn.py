"""DQN learns CartPole-v1 with its defaults, by the command that a user types, and its table keeps the ratio that it promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rollstream.algorithms.dqn.config import DqnConfig

GOAL = 475.0
LIMIT_STEPS = 200_000
LIMIT_S = 600.0
NEWS_ITEMS = 2_000
"""The table's numbers in the summary are those of the last report, up to a second old."""

pytestmark = [pytest.mark.learning, pytest.mark.timeout(LIMIT_S + 60)]


@pytest.mark.parametrize("seed", [0])
def test_dqn_reaches_475_in_training_with_its_defaults(seed: int, tmp_path: Path) -> None:
    summary = train(tmp_path, seed=seed)
    assert summary["phase"] == "succeeded"
    assert summary["training_mean_return"] >= GOAL
    assert summary["env_steps"] < LIMIT_STEPS
    require_counters_add_up(summary)
    require_ratio(summary["tables"]["replay"])


def train(directory: Path, *, seed: int) -> dict[str, Any]:
    """Train in a cell of its own and return the summary."""
    command = [sys.executable, "-m", "rollstream_cli", "train", "dqn", "--env", "CartPole-v1", "--seed", str(seed)]
    command += ["--stop-return", str(GOAL), "--stop-steps", str(LIMIT_STEPS), "--json", "summary.json"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    summary: dict[str, Any] = json.loads((directory / "summary.json").read_text())
    return summary


def require_counters_add_up(summary: dict[str, Any]) -> None:
    """Every step that was sampled went into the table, and every update took one batch of samples."""
    counters, settings = summary["counters"], DqnConfig()
    dropped = sum(count for name, count in counters.items() if name.startswith("env_steps_dropped"))
    assert counters["env_steps_sampled"] == summary["env_steps"] == counters["env_steps_stored"] + dropped
    assert counters["updates"] == summary["updates"] > 0
    prefetched_items = counters["items_sampled"] - settings.batch_items * summary["updates"]
    assert 0 <= prefetched_items <= 4 * settings.sample_items
    assert summary["episodes"] >= 100
    assert summary["actors_contributed"] == 2


def require_ratio(table: dict[str, float]) -> None:
    """Sampled is samples_per_insert times what was inserted beyond the first min_items, within the tolerance."""
    settings = DqnConfig()
    wanted = settings.samples_per_insert * (table["inserted"] - settings.min_items)
    assert abs(wanted - table["sampled"]) <= settings.ratio_tolerance_items + NEWS_ITEMS
    assert table["items"] <= settings.table_items
