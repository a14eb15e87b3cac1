"""O40: observations that are all zero look like training; they are told."""

from __future__ import annotations

import logging
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollstream.clock import FakeClock
from rollstream.envs import Collector, RandomPolicy
from rollstream.envs.gymnasium_vector import GymnasiumVector, InProcess
from rollstream.spaces import row_spec


class ForgetsItsBuffer(InProcess):
    """Steps its copies, and returns the observation buffer in which it never writes."""

    def __init__(self, vector: Any, *, name: str) -> None:
        super().__init__(vector, name=name)
        step = self.step

        def blind(actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            observation, *rest = step(actions)
            return (np.zeros_like(observation), *rest)

        self.step = blind

    def reset(self, *, seed: Any, options: Any) -> tuple[Any, dict[str, Any]]:
        observation, infos = super().reset(seed=seed, options=options)
        return np.zeros_like(observation), infos


@pytest.mark.parametrize(("kind", "warnings"), [(ForgetsItsBuffer, 1), (InProcess, 0)])
def test_o40_a_vector_environment_that_never_writes_its_buffer_is_told(
    kind: type[InProcess], warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    vector = gymnasium.make_vec("CartPole-v1", num_envs=4, vectorization_mode="sync")
    given = (vector.single_observation_space, vector.single_action_space)
    environment = GymnasiumVector(
        kind(vector, name="blind"), name="blind", envs=4, spaces=given, mode="next_step", seed=[1, 2, 3, 4]
    )
    layout = row_spec(environment.observation_leaves, environment.action_leaves)
    policy = RandomPolicy(environment.action_leaves, generator=np.random.default_rng(0))
    collector = Collector(environment, row_spec=layout, policy=policy, clock=FakeClock())
    with caplog.at_level(logging.WARNING, "rollstream.envs"):
        for version in range(12):
            collector.collect(100, version=version)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == warnings
    assert all("environment 'blind': observation has not changed in any copy for 1000 steps in a row" in text for text in told)
