"""The cell on Docker Compose, for real: build, start, submit by REST, scale while it trains, solve, take down. Needs a Docker Engine
with Compose v2.

The project has a name and a port of its own, so it meets no other cell on the machine.
"""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cell_api import Api
from commands import Steps, run, wait_until

pytestmark = pytest.mark.compose

ROOT = Path(__file__).parents[2]
TAG = "e2e"
ACTORS = 4
SPEC = {
    "name": "compose",
    "algorithm": "ppo",
    "environment": {"id": "CartPole-v1"},
    "actors": ACTORS,
    # below the default, so that there is time to scale before it is solved
    "settings": {"learning_rate": 0.0002},
    "stop": {"mean_return": 475},
}
SPEC_WITH_TABLE = {"name": "table", "algorithm": "dqn", "environment": {"id": "CartPole-v1"}, "actors": ACTORS}
KINDS = ("container", "network", "volume")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class Project:
    """One Compose project."""

    name: str = field(default_factory=lambda: f"rollstream-e2e-{secrets.token_hex(3)}")
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: secrets.token_hex(8) + "'\"$ ")
    token: str = field(default_factory=lambda: secrets.token_hex(16))

    def compose(self, *arguments: str, timeout_s: float = 120.0) -> str:
        environment = {
            "ROLLSTREAM_TAG": TAG,
            "ROLLSTREAM_CONTROL_PORT": str(self.port),
            "ROLLSTREAM_REDIS_PASSWORD": self.password,
            "ROLLSTREAM_OPERATOR_TOKEN": self.token,
        }
        file = str(ROOT / "docker-compose.yml")
        return run("docker", "compose", "-f", file, "-p", self.name, *arguments, timeout_s=timeout_s, environment=environment)

    def left(self) -> list[str]:
        """What there is of the project: containers, networks, volumes."""
        mine = f"label=com.docker.compose.project={self.name}"
        return [
            f"{kind} {name}"
            for kind in KINDS
            for name in run(
                "docker", kind, "ls", *(("--all",) if kind == "container" else ()), "--quiet", "--filter", mine
            ).split()
        ]

    @property
    def api(self) -> Api:
        return Api(url=f"http://127.0.0.1:{self.port}", token=self.token)


@pytest.fixture(scope="module")
def steps() -> Iterator[Steps]:
    taken = Steps("compose")
    yield taken
    taken.print()


@pytest.fixture(scope="module")
def project(steps: Steps) -> Iterator[Project]:
    """A running cell with two actors."""
    cell = Project()
    with steps.step("images built"):
        cell.compose("build", "--quiet", "control", "learner", timeout_s=1_100)
    try:
        with steps.step("up and healthy"):
            cell.compose("up", "--detach", "--wait", "--no-build", timeout_s=240)
        yield cell
    finally:
        cell.compose("down", "--volumes", "--timeout", "30")


def test_the_core_image_is_small_and_has_no_torch(project: Project, steps: Steps) -> None:
    look = "import importlib.util as u, os; print(u.find_spec('torch') is None, os.getuid())"
    assert run("docker", "run", "--rm", "--read-only", f"rollstream-core:{TAG}", "python", "-c", look).split() == [
        "True",
        "10001",
    ]
    assert run("docker", "run", "--rm", "--read-only", f"rollstream-torch:{TAG}", "python", "-c", look).split() == [
        "False",
        "10001",
    ]
    for name in ("core", "torch"):
        size = int(run("docker", "image", "inspect", "--format", "{{.Size}}", f"rollstream-{name}:{TAG}"))
        print(f"compose: image {name}: {size / 1e6:.0f} MB")


def test_control_needs_the_token(project: Project) -> None:
    assert Api(url=project.api.url).ask("GET", "/v1/cell").status == 401
    answer = project.api.ask("PUT", "/v1/cell/actors", {"replicas": 3})
    assert answer.status == 409
    assert "docker compose up --detach --scale actor=3" in answer.body["detail"]


def test_an_experiment_is_solved_while_actors_are_added(project: Project, steps: Steps) -> None:
    api = project.api
    answer = api.ask("POST", "/v1/experiments", SPEC)
    assert answer.status == 201, answer.body
    path = f"/v1/experiments/{answer.body['id']}"

    def experiment() -> dict[str, Any]:
        view = api.get(path) or {"phase": "unknown", "reason": "", "counters": {}}
        assert view["phase"] not in ("failed", "stopped"), view["reason"]
        return view

    def at_work() -> list[str]:
        """Actors that have taken environment steps."""
        members = (api.get("/v1/cell") or {"members": []})["members"]
        return [member["id"] for member in members if member["role"] == "actor" and member["detail"].get("env_steps", 0) > 0]

    with steps.step("submitted and training"):
        wait_until("two actors step", lambda: len(at_work()) >= 2 and experiment()["counters"].get("updates"), deadline_s=120)
    with steps.step("scaled to four actors"):
        project.compose("up", "--detach", "--no-build", "--no-recreate", "--scale", f"actor={ACTORS}")
        wait_until("four actors step", lambda: len(at_work()) == ACTORS, deadline_s=120)
    assert experiment()["phase"] == "running", "solved before the new actors came: lower the learning rate of this test"
    with steps.step("solved"):
        solved = wait_until(
            "solved", lambda: view if (view := experiment())["phase"] == "succeeded" else None, deadline_s=600, every_s=1
        )
    summary = solved["summary"]
    print(
        f"compose: mean return {summary['mean_return']} over {summary['evaluation_episodes']} episodes, {summary['env_steps']} steps"
    )
    assert summary["mean_return"] >= 475
    assert summary["evaluation_episodes"] == 100
    assert summary["actors_contributed"] == ACTORS


def test_a_cell_that_is_stopped_in_the_middle_goes_on_when_it_is_started(project: Project, steps: Steps) -> None:
    api = project.api
    answer = api.ask("POST", "/v1/experiments", SPEC_WITH_TABLE)
    assert answer.status == 201, answer.body
    path = f"/v1/experiments/{answer.body['id']}"

    def updates() -> int:
        view = api.get(path)
        return int(view["counters"].get("updates", 0)) if view else 0

    wait_until("updates", lambda: updates() >= 200, deadline_s=120)
    done = updates()
    with steps.step("stopped"):
        project.compose("stop")
    told = project.compose("ps", "--all", "--format", "{{.Service}} {{.ExitCode}}").split("\n")
    ends = sorted(line for line in told if line)
    assert ends == sorted(["redis 0", "control 0", "replay 0", "learner 0", *["actor 0"] * ACTORS])
    with steps.step("started again and trains on"):
        project.compose("up", "--detach", "--wait", "--no-build", "--scale", f"actor={ACTORS}", timeout_s=240)
        assert updates() >= done
        wait_until("more updates", lambda: updates() >= done + 200, deadline_s=120)


def test_taking_it_down_leaves_nothing(project: Project, steps: Steps) -> None:
    with steps.step("down"):
        project.compose("down", "--volumes")
    assert project.left() == []
