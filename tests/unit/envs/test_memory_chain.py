"""The chain that needs memory."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.config import EnvironmentSpec
from rollstream.envs import make_environment
from rollstream.envs.memory_chain import MemoryChain


@pytest.mark.parametrize(("right", "reward"), [(True, 1.0), (False, 0.0)])
def test_the_last_action_counts_and_only_the_first_observation_tells_which(right: bool, reward: float) -> None:
    chain = MemoryChain(num_envs=4, steps=3)
    observation, _ = chain.reset(seed=1)
    cue = observation[:, 0].copy()
    assert set(cue.tolist()) == {-1.0, 1.0}
    action = ((cue + 1) / 2).astype(np.int64)
    for step in (1, 2):
        observation, earned, over, cut, _ = chain.step(1 - action)
        assert observation.tolist() == [[0.0, pytest.approx(step / 3)]] * 4
        assert not earned.any() and not over.any() and not cut.any()
    observation, earned, over, cut, info = chain.step(action if right else 1 - action)
    assert earned.tolist() == [reward] * 4
    assert over.all() and not cut.any()
    assert info["final_obs"].tolist() == [[0.0, 1.0]] * 4
    assert set(np.abs(observation[:, 0]).tolist()) == {1.0}, "the next episode has begun"


def test_it_is_made_by_its_name() -> None:
    spec = EnvironmentSpec(id="rollstream.envs.memory_chain:MemoryChain", kwargs={"steps": 5})
    environment = make_environment(spec, envs=3, seed=0, allow=("rollstream.envs",))
    assert environment.reset()["observation"].shape == (3, 2)
    environment.close()
