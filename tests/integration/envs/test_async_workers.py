"""Environments in processes of their own: the same rows, and faults that say what happened to which copy."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, RandomPolicy, VectorEnvironment, make_environment
from rollstream.envs.hostile import SimulatorBroke
from rollstream.errors import EnvironmentFault
from rollstream.spaces import Rollout, row_spec
from rollstream.user_code import RemoteTraceback

TOYS = ["rollstream.envs.toy", "rollstream.envs.hostile"]
HOSTILE = "rollstream.envs.hostile:HostileEnvironment"
COUNTING = "rollstream.envs.toy:CountingEnvironment"


def rollout(spec: EnvironmentSpec, *, steps: int = 12) -> Rollout:
    environment = make_environment(spec, envs=2, seed=3, allow=TOYS)
    try:
        return collector_of(environment).collect(steps, version=1)
    finally:
        environment.close()


def collector_of(environment: VectorEnvironment) -> Collector:
    layout = row_spec(environment.observation_leaves, environment.action_leaves)
    policy = RandomPolicy(environment.action_leaves, generator=np.random.default_rng(0))
    return Collector(environment, row_spec=layout, policy=policy, clock=SystemClock())


@pytest.mark.parametrize("autoreset", ["next_step", "same_step", "disabled"])
def test_workers_give_the_rows_of_the_same_process(autoreset: str) -> None:
    kwargs = {"lengths": [1, 3, 5], "end": "both"}
    spec = EnvironmentSpec(id=COUNTING, kwargs=kwargs, vectorization="async", autoreset=autoreset)  # type: ignore[arg-type]
    ours = rollout(spec)
    theirs = rollout(spec.model_copy(update={"vectorization": "sync"}))
    assert ours.rows.tobytes() == theirs.rows.tobytes()
    assert multiprocessing.active_children() == []


def test_nested_spaces_come_from_workers_as_from_the_same_process() -> None:
    spec = EnvironmentSpec(id="rollstream.envs.toy:NestedEnvironment", vectorization="async", autoreset="next_step")
    assert rollout(spec).rows.tobytes() == rollout(spec.model_copy(update={"vectorization": "sync"})).rows.tobytes()


def fault_of(kind: str, **arguments: float) -> EnvironmentFault:
    spec = EnvironmentSpec(id=HOSTILE, kwargs={"fault": kind}, vectorization="async")
    environment = make_environment(spec, envs=2, seed=3, allow=TOYS, **arguments)  # type: ignore[arg-type]
    try:
        with pytest.raises(EnvironmentFault) as caught:
            collector_of(environment).collect(20, version=1)
    finally:
        environment.close(timeout_s=2.0)
    assert multiprocessing.active_children() == []
    return caught.value


def test_an_exception_in_a_worker_arrives_with_its_type_and_traceback() -> None:
    fault = fault_of("raise")
    assert "raised SimulatorBroke: the simulator broke" in str(fault)
    assert "'rollstream.envs.hostile:HostileEnvironment' in step: worker of copy" in str(fault)
    assert isinstance(fault.__cause__, SimulatorBroke)
    assert isinstance(fault.__cause__.__cause__, RemoteTraceback)
    assert 'raise SimulatorBroke("the simulator broke")' in str(fault.__cause__.__cause__)


def test_a_constructor_that_raises_in_a_worker_arrives_with_its_type_and_traceback() -> None:
    spec = EnvironmentSpec(id=HOSTILE, kwargs={"fault": "raise_on_build_in_a_worker"}, vectorization="async")
    with pytest.raises(
        EnvironmentFault, match="in its constructor: worker of copy . raised SimulatorBroke: no license"
    ) as caught:
        make_environment(spec, envs=2, seed=3, allow=TOYS)
    assert isinstance(caught.value.__cause__, SimulatorBroke)
    assert 'raise SimulatorBroke("no license")' in str(caught.value.__cause__.__cause__)


def test_an_exception_that_cannot_be_sent_arrives_as_text() -> None:
    fault = fault_of("raise_unpicklable")
    assert "cannot be sent" in str(fault)
    assert isinstance(fault.__cause__, RuntimeError)


def test_a_worker_that_exits_is_reported_with_its_code() -> None:
    assert "a worker process died: copy" in str(fault := fault_of("os_exit"))
    assert "exited with code 9" in str(fault)


def test_a_worker_that_crashes_is_reported_with_signal_and_place() -> None:
    fault = fault_of("segfault")
    assert "was killed by SIGSEGV" in str(fault)
    assert "in _misbehave" in str(fault)


def test_a_worker_that_hangs_is_given_up_at_the_deadline_and_killed() -> None:
    fault = fault_of("hang", step_deadline_s=0.5)
    assert "no answer from the workers of copies [0, 1] within 0.5 s" in str(fault)


def test_a_worker_whose_close_hangs_is_killed() -> None:
    spec = EnvironmentSpec(id=HOSTILE, kwargs={"fault": "close_hangs"}, vectorization="async")
    environment = make_environment(spec, envs=1, seed=3, allow=TOYS)
    environment.reset()
    environment.close(timeout_s=0.5)
    environment.close(timeout_s=0.5)  # once is enough
    assert multiprocessing.active_children() == []


def test_a_wrong_shape_in_a_worker_names_key_and_shapes() -> None:
    spec = EnvironmentSpec(id=HOSTILE, kwargs={"fault": "wrong_shape", "at_step": 0}, vectorization="async")
    environment = make_environment(spec, envs=1, seed=3, allow=TOYS)
    with pytest.raises(EnvironmentFault, match=r"observation: expected 1 x float64\[2, 3\], got an array of shape"):
        environment.reset()
    environment.close()
