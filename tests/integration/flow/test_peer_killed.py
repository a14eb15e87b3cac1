"""DDPPO in a running cell: an actor is killed, the others go on, a new one takes their weights, and the counters add up."""

from __future__ import annotations

import json
import re
import signal
from itertools import pairwise
from typing import Any

import psutil
import pytest

from rollstream.metrics.counters import env_steps_in_flight

pytest.importorskip("torch")

ROLLOUT_STEPS, ENVS, ACTORS = 32, 4, 3
DDPPO = ("train", "ddppo", "--env", "CartPole-v1", "--actors", str(ACTORS), "--envs-per-actor", str(ENVS))
SHORT = ("--set", f"rollout_steps={ROLLOUT_STEPS}", "--set", "report_every_s=0.2", "--set", "evaluation_episodes=0")


@pytest.mark.timeout(600)
def test_a_killed_peer_is_replaced_and_every_step_is_accounted_for(shell: Any) -> None:
    process = shell.start(*DDPPO, *SHORT, "--stop-steps", "10000000", "--json", "out.json")
    shell.until_said(process, "env steps")
    (run,) = shell.runs
    shell.until(lambda: newest(shell, run)["metrics"].get("peers") == ACTORS, timeout_s=180.0)
    kill_an_actor(shell)
    shell.until(lambda: "lost a peer" in said_by_actors(shell, run), timeout_s=180.0)
    shell.until(
        lambda: re.search(r"actor-\d left the group; it goes on with actor-\d", said_by_actors(shell, run)), timeout_s=180.0
    )
    before = newest(shell, run)
    told_before = before["number"] + 2 * ACTORS  # these may still be of the old group
    shell.until(lambda: newest(shell, run)["number"] > told_before, timeout_s=180.0)
    shell.until(lambda: newest(shell, run)["metrics"]["peers"] == ACTORS, timeout_s=180.0)
    assert newest(shell, run)["metrics"]["peer_groups"] > before["metrics"]["peer_groups"]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)

    assert process.returncode == 130
    counters = json.loads((shell.directory / "out.json").read_text())["counters"]
    assert counters["env_steps_sampled"] > before["env_steps"]
    assert env_steps_in_flight(counters) >= 0
    history = reports(shell, run)
    for earlier, later in pairwise(history):
        assert all(later["counters"].get(name, 0) >= value for name, value in earlier["counters"].items())
    most_under_way = 2 * (ACTORS + 1) * ENVS * ROLLOUT_STEPS
    assert all(0 <= env_steps_in_flight(told["counters"]) <= most_under_way for told in history)
    assert {told["metrics"]["unequal_peers"] for told in history if "unequal_peers" in told["metrics"]} == {0.0}


def kill_an_actor(shell: Any) -> None:
    found: list[psutil.Process] = [process for process in shell.processes() if "rollstream_actor" in " ".join(process.cmdline())]
    assert found, "no actor is running"
    found[-1].send_signal(signal.SIGKILL)


def said_by_actors(shell: Any, run: str) -> str:
    return "".join(page.read_text() for page in (shell.directory / "runs" / run / "logs").glob("actor-*.log"))


def reports(shell: Any, run: str) -> list[dict[str, Any]]:
    pages = sorted((shell.directory / "runs" / run).glob("reports*.jsonl"))
    return [json.loads(line) for page in pages for line in page.read_text().splitlines() if line.endswith("}")]


def newest(shell: Any, run: str) -> dict[str, Any]:
    told = reports(shell, run)
    return told[-1] if told else {"metrics": {}, "number": 0, "env_steps": 0}
