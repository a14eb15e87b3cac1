"""EnvPool itself. Runs in the target that installs it (`make test-envpool`), and fails there when it is missing."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, RandomPolicy, inspect_environment, make_environment
from rollstream.errors import ConfigError
from rollstream.spaces import Flag, Rollout, row_spec

pytestmark = pytest.mark.envpool


def collect(*, seed: int, envs: int = 3, steps: int = 40, environment_id: str = "envpool:CartPole-v1") -> Rollout:
    spec = EnvironmentSpec(id=environment_id, kwargs={"num_threads": 1}, max_episode_steps=12)
    environment = make_environment(spec, envs=envs, seed=seed)
    layout = row_spec(environment.observation_leaves, environment.action_leaves)
    policy = RandomPolicy(environment.action_leaves, generator=np.random.default_rng(0))
    rollout = Collector(environment, row_spec=layout, policy=policy, clock=SystemClock()).collect(steps, version=1)
    environment.close()
    return rollout


def test_rows_are_whole_episodes_with_their_final_observations() -> None:
    rollout = collect(seed=1)
    for environment in range(3):
        rows = rollout.rows[rollout.offsets[environment] : rollout.offsets[environment + 1]]
        ends = np.flatnonzero(rows["flags"] & Flag.FINAL)
        assert len(ends) >= 3
        assert (rows["flags"][ends + 1] & Flag.FIRST).all() or ends[-1] == len(rows) - 1
        assert (rows["reward"][ends] == 0).all()
        assert (np.delete(rows["reward"], ends) == 1).all()
        assert (np.abs(rows["observation"][np.flatnonzero(rows["flags"] & Flag.FIRST)]) <= 0.05).all()


def test_copies_differ_and_a_seed_repeats() -> None:
    first = collect(seed=1)
    assert collect(seed=1).rows.tobytes() == first.rows.tobytes()
    assert len({first.rows["observation"][start].tobytes() for start in first.offsets[:-1]}) == 3


def test_frames_keep_their_dtype() -> None:
    assert collect(seed=1, envs=2, steps=3, environment_id="envpool:Pong-v5").rows["observation"].dtype == np.uint8


def test_an_unknown_name_is_refused_with_the_closest() -> None:
    with pytest.raises(ConfigError, match="EnvPool has no environment 'CartPole-v7'; did you mean 'CartPole-v1'"):
        inspect_environment(EnvironmentSpec(id="envpool:CartPole-v7"))
