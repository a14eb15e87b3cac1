"""Law 6: sampled = trained + stored + dropped + in flight, to the last step, in real processes of which some are killed.

RLlib: 22,398,010 steps reported as trained for 706,688 (31.7 times), and counters that restart when a worker dies. Every chain
of operators is checked in memory by `tests/property/test_flow_counters.py`.
"""

from __future__ import annotations

import json
import signal
from itertools import pairwise
from typing import Any

import psutil
import pytest

from rollstream.metrics.counters import env_steps_in_flight

PPO = ("ppo", "--set", "rollout_steps=32", "--set", "report_every_s=0.05")
DQN = ("dqn", "--set", "report_every_s=0.05")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("algorithm", [PPO, DQN], ids=["ppo", "dqn"])
def test_every_step_is_accounted_for_in_a_run_with_kills(shell: Any, algorithm: tuple[str, ...]) -> None:
    process = shell.start(
        "train", *algorithm, "--env", "CartPole-v1", "--envs-per-actor", "4", "--set", "evaluation_episodes=0",
        "--set", "checkpoint.every_s=1", "--stop-steps", "10000000", "--json", "out.json",
    )  # fmt: skip
    shell.until_said(process, "checkpoint 1")
    (run,) = shell.runs
    before = newest(shell, run)
    for role in ("rollstream_actor", "rollstream_learner"):
        kill(shell, role)
        reached = newest(shell, run)["env_steps_sampled"] + 500
        shell.until(lambda reached=reached: newest(shell, run)["env_steps_sampled"] >= reached, timeout_s=180.0)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    counters = json.loads((shell.directory / "out.json").read_text())["counters"]
    assert counters["env_steps_sampled"] > before["env_steps_sampled"]
    assert env_steps_in_flight(counters) >= 0
    history = [report["counters"] for report in reports(shell, run)]
    assert len(history) > 4
    for earlier, later in pairwise(history):
        backwards = {name: (value, later.get(name, 0)) for name, value in earlier.items() if later.get(name, 0) < value}
        assert not backwards, "no counter runs backwards"
    most_under_way = 2 * 4 * 32 * 8
    assert all(0 <= env_steps_in_flight(counted) <= most_under_way for counted in history)


def kill(shell: Any, role: str) -> None:
    found: list[psutil.Process] = [process for process in shell.processes() if role in " ".join(process.cmdline())]
    assert found, f"no {role} is running"
    found[-1].kill()


def reports(shell: Any, run: str) -> list[dict[str, Any]]:
    pages = sorted((shell.directory / "runs" / run).rglob("reports*.jsonl"))
    return [json.loads(line) for page in pages for line in page.read_text().splitlines() if line.endswith("}")]


def newest(shell: Any, run: str) -> dict[str, int]:
    told = reports(shell, run)
    counters: dict[str, int] = told[-1]["counters"] if told else {"env_steps_sampled": 0}
    return counters
