"""Environments that misbehave: every fault says which copy, what was expected and what came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, RandomPolicy, make_environment
from rollstream.envs.hostile import SimulatorBroke
from rollstream.errors import EnvironmentFault, NonFiniteError, SchemaMismatch
from rollstream.spaces import Column, Columns, Flag, Rollout, row_spec

TOYS = ["rollstream.envs"]
HOSTILE = "rollstream.envs.hostile:HostileEnvironment"
VECTOR = "rollstream.envs.toy:CountingVector"


def collector(environment_id: str, *, policy: Any = None, extras: tuple[Column, ...] = (), **fields: Any) -> Collector:
    environment = make_environment(EnvironmentSpec(id=environment_id, **fields), envs=2, seed=0, allow=TOYS)
    policy = policy or RandomPolicy(environment.action_leaves, generator=np.random.default_rng(0))
    layout = row_spec(environment.observation_leaves, environment.action_leaves, extras)
    return Collector(environment, row_spec=layout, policy=policy, clock=FakeClock())


def hostile(fault: str, *, vectorization: str = "auto", steps: int = 12) -> Rollout:
    made = collector(HOSTILE, kwargs={"fault": fault}, vectorization=vectorization)
    made.collect(1, version=4)
    return made.collect(steps, version=5)


@pytest.mark.parametrize("vectorization", ["auto", "sync"])
def test_an_exception_keeps_its_type_and_traceback(vectorization: str) -> None:
    with pytest.raises(EnvironmentFault, match="raised SimulatorBroke in step: the simulator broke") as caught:
        hostile("raise", vectorization=vectorization)
    cause = caught.value.__cause__
    assert isinstance(cause, SimulatorBroke)
    trace = cause.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    assert trace.tb_frame.f_code.co_name == "_misbehave"


def test_a_plain_environment_names_the_copy() -> None:
    with pytest.raises(EnvironmentFault, match=r"HostileEnvironment' \(copy 0\) raised SimulatorBroke in step"):
        hostile("raise")


@pytest.mark.parametrize("vectorization", ["auto", "sync"])
def test_an_exception_at_reset_is_a_fault_too(vectorization: str) -> None:
    with pytest.raises(EnvironmentFault, match="raised SimulatorBroke in reset: cannot start the simulator"):
        hostile("raise_on_reset", vectorization=vectorization)


def test_sys_exit_in_a_simulator_does_not_end_the_process() -> None:
    with pytest.raises(EnvironmentFault, match="raised SystemExit in step: license expired"):
        hostile("sys_exit")


@pytest.mark.parametrize("vectorization", ["auto", "sync"])
def test_a_transposed_observation_is_refused(vectorization: str) -> None:
    with pytest.raises(EnvironmentFault, match=r"in step: observation: expected \d x float64\[2, 3\], got .*\[\d, 3, 2\]"):
        hostile("wrong_shape", vectorization=vectorization)


def test_a_batch_of_the_wrong_size_is_refused_and_never_broadcast() -> None:
    with pytest.raises(EnvironmentFault, match=r"observation: expected 2 x int64\[3\], got an array of shape \[1, 3\]"):
        collector(VECTOR, kwargs={"faulty": "one_row"}).collect(1, version=1)


def test_numbers_of_another_kind_are_refused() -> None:
    with pytest.raises(EnvironmentFault, match="expected numbers of float64, got object"):
        hostile("wrong_dtype")
    with pytest.raises(EnvironmentFault, match="raised ValueError in step: could not convert string to float: 'much'"):
        hostile("text_reward")


@pytest.mark.parametrize("fault", ["float32", "out_of_bounds"])
def test_what_rounding_does_is_tolerated(fault: str) -> None:
    assert hostile(fault).rows["observation"].dtype == np.float64


@pytest.mark.parametrize("vectorization", ["auto", "sync"])
def test_a_bad_reward_names_copy_step_and_version(vectorization: str) -> None:
    with pytest.raises(NonFiniteError, match="it returned nan as reward of copy 0 at vector step 2, acted by weights version 5"):
        hostile("nan_reward", vectorization=vectorization)


def test_a_bad_observation_names_column_and_entry() -> None:
    with pytest.raises(NonFiniteError, match=r"it returned nan as observation\[1, 2\] of copy 0 at vector step 2"):
        hostile("nan_observation")
    with pytest.raises(NonFiniteError, match=r"it returned inf as observation\[0, 0\] of copy 0 at vector step 2"):
        hostile("infinite_observation")


class Sensitive(RandomPolicy):
    """Fails on NaN, as a policy that draws from a distribution does."""

    def act(self, observation: Columns) -> Columns:
        if not np.isfinite(observation["observation"]).all():
            raise ValueError("probabilities contain NaN")
        return super().act(observation)


def test_a_policy_that_fails_on_nan_is_not_blamed_for_it() -> None:
    environment = make_environment(EnvironmentSpec(id=HOSTILE, kwargs={"fault": "none"}), envs=2, seed=0, allow=TOYS)
    policy = Sensitive(environment.action_leaves, generator=np.random.default_rng(0))
    with pytest.raises(NonFiniteError, match="it returned nan as observation"):
        collector(HOSTILE, policy=policy, kwargs={"fault": "nan_observation"}).collect(9, version=1)


class Fixed:
    """Returns the same answer always."""

    def __init__(self, **answer: Any) -> None:
        self._answer = {name: np.asarray(value) for name, value in answer.items()}

    def act(self, observation: Columns) -> Columns:
        return self._answer


def test_an_exception_of_the_policy_passes_unchanged() -> None:
    class Broken:
        def act(self, observation: Columns) -> Columns:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        collector(HOSTILE, policy=Broken(), kwargs={"fault": "none"}).collect(1, version=1)


def test_a_bad_action_is_refused_before_the_environment_sees_it() -> None:
    policy = Fixed(action=np.array([[0.0, 0.0], [0.0, np.inf]], np.float32))
    with pytest.raises(NonFiniteError, match=r"the policy chose inf as action\[1\] of copy 1 at vector step 0"):
        collector(HOSTILE, policy=policy, kwargs={"fault": "none"}).collect(1, version=1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"action": [0, 1]}, r"the policy must return column 'value' as float32\[2\] for each batch, got nothing"),
        ({"action": [0, 1], "value": [0.0]}, r"column 'value' as float32\[2\] for each batch, got float64\[1\]"),
        ({"action": [[0], [1]], "value": [0.0, 0.0]}, r"column 'action' as int64\[2\] for each batch, got int64\[2, 1\]"),
        ({"action": [0.6, 1.2], "value": [0.0, 0.0]}, r"column 'action' as int64\[2\] for each batch, got float64\[2\]"),
    ],
)  # fmt: skip
def test_an_answer_that_does_not_fit_the_rows_is_refused(answer: dict[str, Any], message: str) -> None:
    extras = (Column(name="value", dtype="<f4"),)
    with pytest.raises(SchemaMismatch, match=message):
        collector("CartPole-v1", policy=Fixed(**answer), extras=extras).collect(1, version=1)


def test_a_bad_extra_of_the_policy_is_refused() -> None:
    policy = Fixed(action=[0, 1], value=[0.0, np.nan])
    made = collector("CartPole-v1", policy=policy, extras=(Column(name="value", dtype="<f4"),))
    with pytest.raises(NonFiniteError, match="the policy returned nan as value of copy 1 at vector step 0"):
        made.collect(2, version=1)


def test_a_row_layout_of_another_environment_is_refused() -> None:
    environment = make_environment(EnvironmentSpec(id="CartPole-v1"), envs=2, seed=0)
    layout = row_spec((), environment.action_leaves)
    with pytest.raises(SchemaMismatch, match=r"the row layout lacks columns \['observation'\] of environment 'CartPole-v1'"):
        Collector(environment, row_spec=layout, policy=Fixed(), clock=FakeClock())


def test_a_final_observation_that_is_missing_is_not_invented() -> None:
    with pytest.raises(
        EnvironmentFault, match=r"copies \[0, 1\] ended an episode in mode SAME_STEP without infos\['final_obs'\]"
    ):
        collector(VECTOR, kwargs={"mode": "SameStep", "faulty": "no_final"}).collect(9, version=1)


def test_a_mode_that_is_declared_wrongly_is_found_at_the_first_episode_end() -> None:
    with pytest.raises(
        EnvironmentFault, match="is said to reset in mode NEXT_STEP, but the step of copy 0 after an episode's end"
    ):
        collector(VECTOR, kwargs={"mode": "SameStep", "declared": "NextStep"}).collect(9, version=1)


def test_a_flag_that_is_not_a_truth_value_is_refused() -> None:
    with pytest.raises(EnvironmentFault, match=r"terminated: expected 2 truth values, got an array of shape \[2\] of int64"):
        collector(VECTOR, kwargs={"faulty": "integer_flags"}).collect(1, version=1)


def test_terminated_and_truncated_at_once_are_stored_both() -> None:
    made = collector("rollstream.envs.toy:CountingEnvironment", kwargs={"lengths": [3]}, max_episode_steps=3)
    flags = made.collect(3, version=1).rows["flags"]
    assert flags[3] == Flag.FINAL | Flag.TERMINATED | Flag.TRUNCATED


def test_close_is_called_once_and_not_waited_for_longer_than_told() -> None:
    environment: Any = make_environment(EnvironmentSpec(id=HOSTILE, kwargs={"fault": "close_hangs"}), envs=1, seed=0, allow=TOYS)
    environment.reset()
    with pytest.raises(EnvironmentFault, match=r"close\(\) did not return within 0.05 s; it was abandoned"):
        environment.close(timeout_s=0.05)
    environment.close(timeout_s=0.05)
    assert environment._copies[0].closed == 1


def test_an_error_in_close_is_a_fault() -> None:
    spec = EnvironmentSpec(id=HOSTILE, kwargs={"fault": "close_raises"})
    environment = make_environment(spec, envs=2, seed=0, allow=TOYS)
    environment.reset()
    with pytest.raises(EnvironmentFault, match="raised SimulatorBroke in close: cannot stop the simulator"):
        environment.close()
