"""O32 to O43: spaces, dtypes and shapes, through a whole rollout."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, RandomPolicy, make_environment
from rollstream.spaces import Columns, Rollout, row_spec

TOYS = ["rollstream.envs.toy"]
NESTED = "rollstream.envs.toy:NestedEnvironment"


def collect(spec: EnvironmentSpec, *, steps: int = 12, envs: int = 4, actions: Columns | None = None) -> Rollout:
    environment = make_environment(spec, envs=envs, seed=1, allow=TOYS)
    layout = row_spec(environment.observation_leaves, environment.action_leaves)
    policy = RandomPolicy(environment.action_leaves, generator=np.random.default_rng(0))
    if actions is not None:
        policy.act = lambda observation: actions  # type: ignore[method-assign]
    rollout = Collector(environment, row_spec=layout, policy=policy, clock=FakeClock()).collect(steps, version=1)
    environment.close()
    return rollout


@pytest.mark.parametrize("vectorization", ["auto", "sync"])
def test_o32_actions_start_where_the_space_starts(vectorization: str) -> None:
    kwargs = {"levels": 3, "start": -1}
    spec = EnvironmentSpec(id="rollstream.envs.toy:PickEnvironment", kwargs=kwargs, vectorization=vectorization)  # type: ignore[arg-type]
    assert set(collect(spec, steps=40).rows["action"].tolist()) == {-1, 0, 1}


@pytest.mark.parametrize("vectorization", ["auto", "sync"])
def test_o33_nested_spaces_go_in_and_out_unchanged(vectorization: str) -> None:
    spec = EnvironmentSpec(id=NESTED, vectorization=vectorization)  # type: ignore[arg-type]
    rows = collect(spec).rows
    assert rows.dtype.names[2:7] == (
        "observation.a.x",
        "observation.a.y",
        "observation.b.0",
        "observation.b.1",
        "action.0",
    )
    first = rows[:5]
    assert first["observation.a.y"].tolist() == [-2, -1, 0, 1, 2]
    assert first["observation.b.0"][:, 1, 2].tolist() == [0, 1, 2, 3, 4]
    assert first["observation.b.1"].tolist() == [[1, 0, 0], [1, 0, 1], [1, 0, 0], [1, 0, 1], [1, 0, 0]]


def test_o36_float64_stays_float64_and_actions_are_cast_once() -> None:
    assert collect(EnvironmentSpec(id=NESTED)).rows["observation.a.x"].dtype == np.float64
    answer = {
        "action.0": np.zeros(4, np.int32),
        "action.1": np.zeros((4, 2, 2), np.int64),
        "action.2.torque": np.full((4, 2), 0.5, np.float32),  # float32 where the space says float64
        "action.2.brake": np.zeros((4, 2), np.int64),
    }
    rows = collect(EnvironmentSpec(id=NESTED), actions=answer).rows
    assert (rows["action.2.torque"].dtype, rows["action.2.brake"].dtype) == (np.float64, np.int8)


def test_o41_multi_discrete_of_two_axes_is_an_action() -> None:
    actions = collect(EnvironmentSpec(id=NESTED)).rows["action.1"]
    assert actions.shape[1:] == (2, 2)
    assert (actions.max(axis=0) < [[2, 3], [4, 5]]).all()


def test_o42_a_discrete_observation_works_with_several_copies() -> None:
    taxi = max(name for name in gymnasium.registry if name.startswith("Taxi-v"))
    rows = collect(EnvironmentSpec(id=taxi), steps=20).rows
    assert rows["observation"].dtype == np.int64
    assert len(set(rows["observation"].tolist())) > 4
