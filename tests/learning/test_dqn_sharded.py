"""DQN solves CartPole-v1 from a table of three replay shards, of which one is killed on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

pytestmark = [pytest.mark.learning, pytest.mark.timeout(600)]

RETURN = 475.0
SHARDS = 3
TRAIN_S = 480.0
RECOVER_S = 60.0


@dataclass(frozen=True)
class Cell:
    """A cell on this machine, driven over its REST API."""

    url: str
    token: str

    def get(self, path: str) -> dict[str, Any]:
        with httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=30) as client:
            answer = client.get(path)
            answer.raise_for_status()
            found: dict[str, Any] = answer.json()
            return found

    def post(self, path: str, body: Any) -> dict[str, Any]:
        with httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=30) as client:
            answer = client.post(path, json=body)
            answer.raise_for_status()
            found: dict[str, Any] = answer.json()
            return found

    def shards(self) -> dict[int, int]:
        """Process ids of the replay shards by their numbers."""
        return {member["shard"]: int(member["pid"]) for member in self.get("/v1/cell")["members"] if member["role"] == "replay"}


def cli(*arguments: str, cwd: Path) -> None:
    command = [sys.executable, "-m", "rollstream_cli", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def cell(tmp_path: Path) -> Iterator[Cell]:
    cli("up", "--dir", "cell", "--actors", "3", "--replay-shards", str(SHARDS), cwd=tmp_path)
    state = json.loads((tmp_path / "cell" / "cell.json").read_text())
    try:
        yield Cell(url=state["url"], token=state["token"])
    finally:
        cli("down", "--dir", "cell", cwd=tmp_path)


def wait_until(what: str, condition: Callable[[], bool], *, within_s: float, state: Callable[[], object]) -> None:
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() - began_s < within_s, f"not within {within_s:.0f} s: {what}; {state()}"
        time.sleep(0.2)


def test_dqn_reaches_475_from_three_shards_of_which_one_is_killed(cell: Cell) -> None:
    spec = {
        "name": "three-shards",
        "algorithm": "dqn",
        "environment": {"id": "CartPole-v1"},
        "actors": 3,
        "seed": 1,
        "settings": {"table_shards": SHARDS},
        "stop": {"mean_return": RETURN, "env_steps": 300_000},
        "evaluation_episodes": 0,
    }
    path = "/v1/experiments/" + cell.post("/v1/experiments", spec)["id"]

    def table() -> dict[str, Any]:
        tables = cell.get(path + "/tables")["tables"]
        found: dict[str, Any] = tables[0] if tables else {"shards": []}
        return found

    def phase() -> str:
        return str(cell.get(path)["phase"])

    def everywhere(count: str, *, least: int) -> bool:
        counts = [int(shard["info"][count]) for shard in table()["shards"] if shard["info"] is not None]
        return len(counts) == SHARDS and min(counts) > least

    def state() -> str:
        seen = {name: cell.get(path + "/" + name) for name in ("tables", "flow", "faults")}
        return json.dumps({"experiment": cell.get(path), "members": cell.get("/v1/cell")["members"], **seen}, indent=1)

    wait_until("items on each shard", lambda: everywhere("items", least=500), within_s=120, state=state)
    wait_until("samples of each shard", lambda: everywhere("sampled", least=2000), within_s=120, state=state)
    victim = cell.shards()[1]
    os.kill(victim, signal.SIGKILL)
    wait_until("another process for shard 1", lambda: cell.shards().get(1, victim) != victim, within_s=RECOVER_S, state=state)
    wait_until("the shard's items", lambda: everywhere("items", least=500), within_s=RECOVER_S, state=state)
    wait_until("the end", lambda: phase() not in ("queued", "starting", "running"), within_s=TRAIN_S, state=state)
    seen = cell.get(path)
    assert seen["phase"] == "succeeded", seen
    assert not [fault for fault in cell.get(path + "/faults")["faults"] if fault["data"]["fatal"]]
