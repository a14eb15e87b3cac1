"""The policy of DDPG and TD3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollstream.graph import DeterministicActorCritic
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.component_test import component_test
from rollstream.graph.scope import Parameters, Scope
from rollstream.spaces import leaves

OBSERVATION = leaves(gymnasium.spaces.Box(-1.0, 1.0, (3,)), "observation")
ACTIONS = leaves(gymnasium.spaces.Box(-2.0, 4.0, (2,)), "action")


@pytest.fixture
def policy() -> DeterministicActorCritic:
    return DeterministicActorCritic(OBSERVATION, ACTIONS, hidden=())


def test_noise_is_in_halves_of_the_range(policy: DeterministicActorCritic, trained: Callable[..., Any]) -> None:
    made = trained(policy, rows=1, scale=0.0)
    observation, noise = {"observation": np.zeros((1, 3), np.float32)}, {"noise.action": np.array([[0.5, -1.0]], np.float32)}
    assert made.policy.greedy(observation)["action"].tolist() == [[1.0, 1.0]]
    found = made.acting.act(observation, made.generator, noise=noise, noise_scale=0.2)["action"]
    np.testing.assert_allclose(found, [[1 + 3 * 0.1, 1 - 3 * 0.2]], rtol=1e-6)


def test_target_smoothing_cuts_the_noise_and_stays_inside(policy: DeterministicActorCritic, trained: Callable[..., Any]) -> None:
    made = trained(policy, rows=1, scale=0.0)
    tensors = made.acting.layout.split(made.flat)
    tensors["policy.action.bias"][...] = [0.0, 20.0]
    scope = Scope(NumpyOps(), Parameters(live=tensors, frozen=tensors))
    found = policy.perturbed(
        scope,
        observation={"observation": np.zeros((1, 3), np.float32)},
        noise={"noise.action": np.array([[9.0, 9.0]], np.float32)},
        scale=0.2,
        limit=0.5,
    )["action"]
    np.testing.assert_allclose(found, [[1 + 3 * 0.5, 4.0]], rtol=1e-6)


def test_critics_are_two(policy: DeterministicActorCritic, trained: Callable[..., Any]) -> None:
    made = trained(policy, rows=4)
    inputs = {"observation": np.ones((4, 3), np.float32), "action": made.generator.uniform(-2, 4, (4, 2)).astype(np.float32)}
    found = made.reference("critics", inputs)
    assert (found["q1"] != found["q2"]).all()


def test_modes_agree_and_slopes_are_right() -> None:
    component_test(DeterministicActorCritic(OBSERVATION, ACTIONS, hidden=(8,)))
