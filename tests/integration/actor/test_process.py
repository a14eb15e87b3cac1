"""`python -m rollstream_actor` as a process: what it has loaded, and how much memory it takes, while it acts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import psutil
import pytest

from rollstream.algorithms import make_agent
from rollstream.clock import Deadline, SystemClock
from rollstream.config import ExperimentSpec
from rollstream.envs import inspect_environment
from rollstream.graph import declare
from rollstream.spaces import row_spec
from rollstream.store import Address, Assignment, Assignments, Experiments, Members, Store, keys
from rollstream.weights import WeightStore

CLOCK = SystemClock()
LIMIT_BYTES = 150_000_000
HEAVY = ("torch", "onnx", "jax", "matplotlib", "pandas", "scipy")
SPECS: dict[str, dict[str, Any]] = {
    "ppo": {"algorithm": "ppo", "environment": {"id": "CartPole-v1"}},
    "dqn": {"algorithm": "dqn", "environment": {"id": "CartPole-v1"}},
    "many leaves": {"algorithm": "ppo", "environment": {"id": "rollstream.envs.toy:NestedEnvironment"}},
}


@pytest.fixture
def acting(address: Address, store: Store) -> Iterator[Callable[[dict[str, Any]], psutil.Process]]:
    """`acting(spec)`: an actor process that has sent its first rows of such an experiment."""
    started: list[subprocess.Popen[str]] = []

    def start(document: dict[str, Any]) -> psutil.Process:
        spec = ExperimentSpec.model_validate({"name": "toy", "envs_per_actor": 8, **document})
        seen = inspect_environment(spec.environment, allow=["rollstream.envs.toy"])
        agent = make_agent(spec.algorithm, spec.settings, observation=seen.observation_leaves, actions=seen.action_leaves)
        declared = declare(agent.policy)
        tensors = {**declared.layout.split(declared.layout.init(0)), **declared.state_layout.split(declared.state_layout.init(0))}
        extra = {"scalar.epsilon": np.float32([0.1])} if spec.algorithm == "dqn" else {}
        rows = row_spec(seen.observation_leaves, seen.action_leaves, extra=agent.extra_columns)
        tables = {f"toy-00abcd.{table}": made for table, made in agent.tables(rows).items()}
        for table, made in tables.items():
            told = made.model_dump_json()
            store.run("make a table", lambda client, table=table, told=told: client.hset(keys.tables(), table, told))
        Experiments(store).submit("toy-00abcd", spec)
        WeightStore(store, experiment="toy-00abcd").publish(1, {**tensors, **extra})
        Assignments(store).assign("actor-0", Assignment(experiment="toy-00abcd", ordinal=0, generation=1))
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ROLLSTREAM_")}
        ours = {
            "ROLLSTREAM_REDIS_URL": str(address),
            "ROLLSTREAM_MEMBER_ID": "actor-0",
            "ROLLSTREAM_ENVIRONMENT_MODULES": "rollstream.envs.toy",
        }
        command = [sys.executable, "-m", "rollstream_actor"]
        started.append(
            subprocess.Popen(command, env=inherited | ours, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
        deadline = Deadline(CLOCK, after_s=60.0)
        while not _has_written(store, tables):
            assert started[-1].poll() is None, started[-1].communicate()[0]
            assert not deadline.passed(), Experiments(store).faults("toy-00abcd")
            CLOCK.sleep(0.05)
        return psutil.Process(started[-1].pid)

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _has_written(store: Store, tables: Mapping[str, Any]) -> bool:
    """Whether an actor has sent rows: to the learner, or to a replay table."""
    record = Members(store).get("actor-0")
    sent = record is not None and record.detail.get("env_steps", 0) > 0
    return sent or any(store.run("count", lambda client, name=name: client.xlen(keys.table_log(name, 0))) for name in tables)


@pytest.mark.parametrize("name", SPECS)
def test_an_actor_that_acts_takes_less_than_150_mb_and_has_loaded_nothing_heavy(
    acting: Callable[[dict[str, Any]], psutil.Process], name: str
) -> None:
    process = acting(SPECS[name])
    libraries = {part for entry in process.memory_maps() for part in entry.path.split("/")}
    assert "numpy" in libraries
    assert not libraries & set(HEAVY)
    assert process.memory_info().rss < LIMIT_BYTES
