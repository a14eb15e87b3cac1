"""O52 and O53: copies differ, runs repeat."""

from __future__ import annotations

import numpy as np

from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, RandomPolicy, make_environment
from rollstream.seeding import child_generator, child_seed
from rollstream.spaces import row_spec


def first_observations(*, seed: int) -> list[bytes]:
    """Of 4 actors with 4 copies each."""
    found = []
    for actor in range(4):
        spec = EnvironmentSpec(id="Acrobot-v1")
        environment = make_environment(spec, envs=4, seed=child_seed(seed, "actor", actor))
        found += [row.tobytes() for row in environment.reset()["observation"]]
        environment.close()
    return found


def test_o52_all_copies_start_differently_and_a_run_repeats() -> None:
    first = first_observations(seed=7)
    assert len(set(first)) == 16
    assert first_observations(seed=7) == first


def rollout_bytes(*, seed: int) -> bytes:
    environment = make_environment(EnvironmentSpec(id="CartPole-v1"), envs=4, seed=seed)
    layout = row_spec(environment.observation_leaves, environment.action_leaves)
    policy = RandomPolicy(environment.action_leaves, generator=child_generator(seed, "warm-up"))
    collector = Collector(environment, row_spec=layout, policy=policy, clock=FakeClock())
    return collector.collect(50, version=0).rows.tobytes() + np.array([seed]).tobytes()


def test_o53_random_actions_repeat_with_their_seed() -> None:
    assert rollout_bytes(seed=3) == rollout_bytes(seed=3)
    assert rollout_bytes(seed=3)[:-8] != rollout_bytes(seed=4)[:-8]
