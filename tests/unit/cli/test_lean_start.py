"""What is not imported on the way to the first result: each of these costs tenths of a second in every process that has it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rollstream.config import EnvironmentSpec, ExperimentSpec
from rollstream_cli.cell.shared_imports import shared_imports

HEAVY = {
    "torch",
    "jax",
    "onnxruntime",
    "scipy",
    "sklearn",
    "pandas",
    "matplotlib",
    "tensorboard",
    "kubernetes",
    "pettingzoo",
    "envpool",
}
WEB = {"fastapi", "uvicorn", "starlette"}
ALGORITHMS = "rollstream.algorithms."


def imported_with(modules: list[str]) -> set[str]:
    """Names of all modules that a fresh process has after importing `modules`."""
    code = "import importlib, json, sys; [importlib.import_module(name) for name in sys.argv[1:]]; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code, *modules], stdout=subprocess.PIPE, check=True)
    return set(json.loads(done.stdout))


def spec_of(algorithm: str, environment: str = "CartPole-v1") -> ExperimentSpec:
    return ExperimentSpec(algorithm=algorithm, environment=EnvironmentSpec(id=environment))


def test_the_command_line_imports_no_library_before_it_knows_the_command() -> None:
    assert not (HEAVY | WEB | {"numpy", "redis", "gymnasium", "httpx", "pydantic"}) & imported_with(["rollstream_cli.app"])


@pytest.mark.parametrize("algorithm", ["ppo", "impala", "dqn"])
def test_learner_and_actors_begin_without_what_only_later_work_needs(algorithm: str) -> None:
    found = imported_with(shared_imports(spec_of(algorithm)))
    assert not (HEAVY | WEB | {"rich.progress", "typer"}) & found
    others = {name.removeprefix(ALGORITHMS).split(".")[0] for name in found if name.startswith(ALGORITHMS)} - {algorithm}
    assert not others & {"ppo", "appo", "a2c", "sac", "dqn", "r2d2", "maml", "es", "self_play"}


def test_control_begins_without_a_cluster_and_without_networks_of_torch() -> None:
    assert not HEAVY & imported_with(["rollstream_control.wiring"])


def test_modules_of_the_user_are_not_imported_for_all() -> None:
    assert "gymnasium" in shared_imports(spec_of("ppo"))
    assert "gymnasium" not in shared_imports(spec_of("ppo", "my_games.maze:Maze"))
    assert all(name.startswith(("rollstream", "gymnasium")) for name in shared_imports(spec_of("dqn")))
