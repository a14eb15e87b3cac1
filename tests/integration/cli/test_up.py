"""A long-lived cell on this machine, with all services and a real server."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

SHORT = ("--set", "evaluation_episodes=2", "--set", "rollout_steps=64", "--envs-per-actor", "4")
"""A run that is over soon after it has begun."""
SUBMIT = ("submit", "--algo", "ppo", "--env", "CartPole-v1", "--name", "long", *SHORT, "--json")


@pytest.fixture
def cell(shell: Any) -> Iterator[Any]:
    started = shell.json("up", "--replay-shards", "0", "--actors", "1", "--json")
    assert not started["already_running"]
    yield shell
    assert shell.json("down", "--json")["stopped"]
    assert not (shell.directory / "runs" / "cell" / "cell.json").exists()


def actors_of(cell: Any) -> list[str]:
    members = cell.json("status", "--json")["cell"]["members"]
    return [member["id"] for member in members if member["role"] == "actor"]


def test_an_experiment_lives_on_a_cell(cell: Any) -> None:
    experiment = cell.json(*SUBMIT)["id"]
    cell.until(lambda: cell.json("status", experiment, "--json")["counters"].get("updates", 0) > 0)
    shown = cell.run("status", experiment).stdout
    assert "running" in shown
    assert "env steps" in shown
    assert cell.json("stop", experiment, "--json")["phase"] == "stopped"
    assert "goes on from" in cell.run("resume", experiment, "--stop-steps", "100000000").stdout


def test_an_experiment_is_paused_and_goes_on(cell: Any) -> None:
    experiment = cell.json(*SUBMIT)["id"]

    def now() -> Any:
        return cell.json("status", experiment, "--json")

    for _ in range(2):  # at once, and while it runs
        cell.json("pause", experiment, "--json")
        cell.until(lambda: now()["phase"] == "paused")
        trained = now()["counters"].get("updates", 0)
        cell.run("resume", experiment)
        cell.until(lambda trained=trained: now()["counters"].get("updates", 0) > trained)
    assert cell.json("stop", experiment, "--json")["phase"] == "stopped"


def test_a_cell_is_scaled_and_shows_its_members_and_logs(cell: Any) -> None:
    assert cell.json("up", "--json")["already_running"]
    assert cell.json("scale", "2", "--json")["replicas"] == 2
    cell.until(lambda: len(actors_of(cell)) == 2)
    assert cell.json("scale", "1", "--json")["replicas"] == 1
    cell.until(lambda: actors_of(cell) == ["actor-0"])
    assert "actor-0" in cell.run("status").stdout
    assert "ready" in cell.run("logs", "actor-0").stdout


def test_a_submission_that_is_refused_lists_every_field(cell: Any) -> None:
    done = cell.run("submit", "--algo", "ppo", "--env", "CartPol-v1")
    assert done.returncode == 2
    assert "did you mean 'CartPole-v1'" in done.stderr
    unknown = cell.run("status", "nothing-abc123")
    assert unknown.returncode == 1
    assert "there is no experiment 'nothing-abc123'" in unknown.stderr


def test_a_wrong_token_is_refused(cell: Any) -> None:
    done = cell.run("status", "--token", "not-the-right-one")
    assert done.returncode == 1
    assert "give it with --token or ROLLSTREAM_TOKEN" in done.stderr


def test_a_killed_supervisor_takes_its_processes_with_it_and_can_be_replaced(shell: Any) -> None:
    shell.json("up", "--replay-shards", "0", "--actors", "1", "--json")
    state = json.loads((shell.directory / "runs" / "cell" / "cell.json").read_text())
    psutil.Process(state["pid"]).kill()
    shell.until(lambda: not shell.processes())
    assert not shell.json("up", "--replay-shards", "0", "--actors", "1", "--json")["already_running"]
    assert shell.json("down", "--json")["stopped"]


def test_a_port_in_use_is_refused_and_nothing_is_left(shell: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = shell.run("up", "--port", str(port))
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert shell.processes() == []
