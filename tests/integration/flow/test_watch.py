"""A flow is seen while it runs in a real cell: by `rollstream flow watch`, by the REST API, and as `rollstream flow show` drew it."""

from __future__ import annotations

import json
import signal
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from rollstream_cli.cell.state import read_state

IMPALA = ("train", "impala", "--env", "CartPole-v1", "--actors", "2", "--envs-per-actor", "2", "--stop-steps", "100000000")
SHORT = ("--set", "rollout_steps=16", "--set", "report_every_s=0.2", "--set", "evaluation_episodes=0")
MODULE_TIMEOUT_S = 180.0


@pytest.fixture(scope="module")
def running(make_shell: Any) -> Iterator[Any]:
    """A shell in whose directory a run goes on until all tests are over."""
    with make_shell() as shell:
        process = shell.start(*IMPALA, *SHORT)
        try:
            shell.until_said(process, "env steps")
            shell.until(lambda: is_moving(looked(shell)), timeout_s=MODULE_TIMEOUT_S)
            yield shell
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=90)


def looked(shell: Any) -> dict[str, Any]:
    """One look at the newest run."""
    told: dict[str, Any] = shell.json("flow", "watch", "--json")
    return told["flow"] or {"nodes": []}


def is_moving(flow: dict[str, Any]) -> bool:
    """Whether every operator has told of its items, those in the actors too."""
    return bool(flow["nodes"]) and all(node["items"] and node["items_per_s"] for node in flow["nodes"])


@pytest.mark.timeout(600)
def test_every_operator_tells_its_rate_its_depth_and_what_it_waited(running: Any) -> None:
    flow = looked(running)
    nodes = {node["name"]: node for node in flow["nodes"]}
    assert nodes["update"]["learns"]
    assert nodes["update"]["busy_s"] > 0
    assert 0 < nodes["update"]["busy_share"] <= 1
    assert nodes["gather_async"]["waited_s"] > 0
    assert nodes["gather_async"]["env_steps_per_s"] > 0
    assert nodes["rollouts"]["where"] == "actor"
    assert nodes["rollouts"]["processes"] == 2
    assert nodes["rollouts"]["busy_share"] > 0
    holding = [node for node in flow["nodes"] if node["bound_items"]]
    assert holding, "IMPALA mixes earlier batches in, or queues them"
    assert all(0 <= node["depth_items"] <= node["bound_items"] for node in holding)
    assert [edge["in_flight"] > 0 for edge in flow["edges"]].count(True) == 1
    assert flow["in_flight_env_steps"] >= 0


@pytest.mark.timeout(600)
def test_the_bottleneck_is_one_sentence_with_its_share(running: Any) -> None:
    bottleneck = looked(running)["bottleneck"]
    assert 0 <= bottleneck["share"] <= 1
    assert f"{100 * bottleneck['share']:.0f} % of the time" in bottleneck["sentence"]


@pytest.mark.timeout(600)
def test_the_api_tells_what_the_command_shows(running: Any) -> None:
    (run,) = running.runs
    state = read_state(running.directory / "runs" / run)
    wanted = urllib.request.Request(
        f"{state.url}/v1/experiments/{run}/flow", headers={"Authorization": f"Bearer {state.token}"} if state.token else {}
    )
    with urllib.request.urlopen(wanted, timeout=30) as reply:
        assert reply.status == 200
        told = json.load(reply)
    assert told["id"] == run
    assert [node["name"] for node in told["flow"]["nodes"]] == [node["name"] for node in looked(running)["nodes"]]
    assert is_moving(told["flow"])


@pytest.mark.timeout(600)
def test_the_flow_that_runs_is_the_one_that_was_drawn(running: Any) -> None:
    drawn = running.json("flow", "show", "impala", "--env", "CartPole-v1", "--set", "rollout_steps=16", "--format", "json")
    keys = ("name", "kind", "where", "line", "table", "learns")
    assert [[node[key] for key in keys] for node in drawn["nodes"]] == [
        [node[key] for key in keys] for node in looked(running)["nodes"]
    ]


@pytest.mark.timeout(600)
def test_watch_shows_frame_below_frame_until_it_is_ended(running: Any) -> None:
    process = running.start("flow", "watch", "--every-s", "0.2")
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if sum("% of the time" in each for each in said) == 2:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    text = "".join(said)
    for words in ("operator", "items/s", "waited s", "update", "gather_async", "2 actors", "running"):
        assert words in text
