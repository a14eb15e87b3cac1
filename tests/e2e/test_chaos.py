"""Chaos: while PPO and then DQN train, every role and Redis is killed once with SIGKILL; the run still reaches its return.

Prints one JSON line per algorithm: recovery seconds and environment steps lost, per role.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from rollstream.clock import SystemClock
from rollstream.store import Store, parse_address

pytestmark = pytest.mark.chaos

RETURN = 475.0
ROLES = {"ppo": ("actor", "learner", "control", "redis"), "dqn": ("actor", "replay", "learner", "control", "redis")}
TRAIN_S = 300.0
RECOVER_S = 60.0


def cli(*arguments: str, cwd: Path) -> str:
    """Run `rollstream` and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "rollstream_cli", *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass
class Cell:
    """A cell on this machine, driven over its REST API."""

    directory: Path
    url: str
    token: str
    redis: str
    seen: dict[str, int] = field(default_factory=dict)
    after: str = "0"
    mean_return: float | None = None

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """GET, patient with a control that is being restarted."""
        return self._patiently(lambda client: client.get(path, params=query))

    def post(self, path: str, body: Any = None) -> dict[str, Any]:
        return self._patiently(lambda client: client.post(path, json=body))

    def _patiently(self, call: Callable[[httpx.Client], httpx.Response]) -> dict[str, Any]:
        deadline_s = time.monotonic() + RECOVER_S
        while True:
            try:
                with httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=10) as client:
                    answer = call(client)
                if answer.status_code < 500:
                    answer.raise_for_status()
                    found: dict[str, Any] = answer.json()
                    return found
                trouble = answer.text
            except httpx.TransportError as error:
                trouble = repr(error)
            assert time.monotonic() < deadline_s, f"control does not answer: {trouble}"
            time.sleep(0.1)

    def counters(self, experiment: str) -> dict[str, int]:
        """Counters of the newest report; of no report may a counter be below what an earlier one said."""
        while True:
            listed = self.get(f"/v1/experiments/{experiment}/reports", after=self.after)
            for entry in listed["reports"]:
                counters = entry["data"]["counters"]
                for name, value in self.seen.items():
                    assert counters.get(name, 0) >= value, f"counter {name} ran backwards: {value} to {counters.get(name, 0)}"
                self.seen |= counters
                self.mean_return = entry["data"]["mean_return"]
            self.after = listed["next_after"]
            if not listed["reports"]:
                return dict(self.seen)

    def pid_of(self, role: str) -> int:
        """Process id of a living member of this role, or of Redis; 0 when there is none now."""
        if role == "redis":
            store = Store(parse_address(self.redis), clock=SystemClock(), name="chaos")
            info: Mapping[str, Any] = store.run("ask for the process id", lambda client: client.info("server"))  # type: ignore[arg-type, return-value]
            store.close()
            return int(info["process_id"])
        members = [member for member in self.get("/v1/cell")["members"] if member["role"] == role]
        return int(members[0]["pid"]) if members else 0


@pytest.fixture
def cell(tmp_path: Path) -> Iterator[Cell]:
    cli("up", "--dir", "cell", "--actors", "2", cwd=tmp_path)
    state = json.loads((tmp_path / "cell" / "cell.json").read_text())
    try:
        yield Cell(directory=tmp_path / "cell", url=state["url"], token=state["token"], redis=state["redis"])
    finally:
        cli("down", "--dir", "cell", cwd=tmp_path)


def wait_until(what: str, condition: Callable[[], bool], *, within_s: float) -> float:
    """Seconds until `condition` held."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() - began_s < within_s, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - began_s


def grows(cell: Cell, experiment: str, *, beyond: Mapping[str, int]) -> bool:
    """Whether the run has sampled and updated more than `beyond`."""
    now = cell.counters(experiment)
    return all(now.get(name, 0) > beyond.get(name, 0) for name in ("env_steps_sampled", "updates"))


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_every_role_is_killed_once_and_the_run_still_reaches_its_return(cell: Cell, algorithm: str) -> None:
    spec = {
        "name": f"chaos-{algorithm}",
        "algorithm": algorithm,
        "environment": {"id": "CartPole-v1"},
        "seed": 1,
        "settings": {"report_every_s": 0.2},
        "checkpoint": {"every_s": 2.0},
        "evaluation_episodes": 0,
    }
    experiment = cell.post("/v1/experiments", spec)["id"]
    path = f"/v1/experiments/{experiment}"
    wait_until("the first updates", lambda: cell.counters(experiment).get("updates", 0) > 0, within_s=RECOVER_S)
    recovery: dict[str, dict[str, float]] = {}
    for role in ROLES[algorithm]:
        time.sleep(2.5)  # let a checkpoint and a snapshot lie between two kills
        victim, before = cell.pid_of(role), cell.counters(experiment)
        assert victim, f"no {role} in the cell"
        os.kill(victim, signal.SIGKILL)
        killed_s = time.monotonic()
        wait_until(f"another {role}", lambda r=role, v=victim: cell.pid_of(r) not in (0, v), within_s=RECOVER_S)  # type: ignore[misc]
        at_kill = cell.counters(experiment) or before
        wait_until(f"progress after {role}", lambda b=at_kill: grows(cell, experiment, beyond=b), within_s=RECOVER_S)  # type: ignore[misc]
        after = cell.counters(experiment)
        lost = {
            name: after[name] - before.get(name, 0)
            for name in after
            if name.startswith("env_steps_dropped") and after[name] > before.get(name, 0)
        }
        recovery[role] = {"recovery_s": round(time.monotonic() - killed_s, 2), "env_steps_lost": sum(lost.values())}

    def reached() -> bool:
        cell.counters(experiment)
        view = cell.get(path)
        assert view["phase"] == "running", view
        return cell.mean_return is not None and cell.mean_return >= RETURN

    wait_until(f"mean return {RETURN}", reached, within_s=TRAIN_S)
    cell.post(path + "/stop")
    wait_until("the stop", lambda: cell.get(path)["phase"] == "stopped", within_s=RECOVER_S)
    faults = cell.get(path + "/faults")["faults"]
    assert not [fault for fault in faults if fault["data"]["fatal"]]
    print(json.dumps({"algorithm": algorithm, "mean_return_reached": RETURN, "roles": recovery}))
