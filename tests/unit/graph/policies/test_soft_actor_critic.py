"""The policy of SAC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import SoftActorCritic, declare
from rollstream.graph.component_test import component_test
from rollstream.spaces import leaves

OBSERVATION = leaves(gymnasium.spaces.Box(-1.0, 1.0, (3,)), "observation")
ACTIONS = leaves(
    gymnasium.spaces.Dict({"a": gymnasium.spaces.Box(-3.0, 1.0, (2,)), "b": gymnasium.spaces.Box(0.0, 1.0, (1,), np.float64)}),
    "action",
)


@pytest.fixture
def policy() -> SoftActorCritic:
    return SoftActorCritic(OBSERVATION, ACTIONS, hidden=(8,), initial_temperature=0.2)


def test_actions_lie_within_bounds_and_have_a_density(policy: SoftActorCritic, trained: Callable[..., Any]) -> None:
    made = trained(policy, rows=100, scale=3.0)
    observation = {"observation": made.generator.standard_normal((100, 3)).astype(np.float32)}
    for found in (made.policy.act(observation), made.policy.greedy(observation)):
        assert found["action.a"].min() >= -3.0
        assert found["action.a"].max() <= 1.0
        assert found["action.b"].dtype == np.float64
        assert found["action.b"].min() >= 0.0
        assert found["action.b"].max() <= 1.0
    assert np.isfinite(made.acting.act(observation, made.generator)["log_prob"]).all()


def test_critics_are_two_and_see_the_action_in_units_of_its_bounds(policy: SoftActorCritic, trained: Callable[..., Any]) -> None:
    policy = SoftActorCritic(OBSERVATION, ACTIONS[:1], hidden=())
    made = trained(policy, rows=1)
    tensors = dict(made.acting.layout.split(made.flat.copy()))
    for name, view in tensors.items():
        view[...] = 0
        if name.endswith("value.weight"):
            view[-2:] = 1 if ".q1." in name else 10  # after three numbers of the observation
    made.flat[...] = made.acting.layout.join(tensors)
    inputs = {"observation": np.ones((1, 3), np.float32), "action.a": np.array([[1.0, -2.0]], np.float32)}
    found = made.reference("critics", inputs)
    assert {name: column.tolist() for name, column in found.items()} == {"q1": [0.5], "q2": [5.0], "temperature": [1.0]}


def test_the_temperature_is_a_parameter(policy: SoftActorCritic) -> None:
    layout = declare(policy).layout
    np.testing.assert_allclose(layout.split(layout.init(0))["log_alpha"], [np.log(0.2)], rtol=1e-6)
    assert policy.action_size == 3


def test_modes_agree_and_slopes_are_right(policy: SoftActorCritic) -> None:
    component_test(policy)


def test_a_temperature_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="initial_temperature must be > 0, got 0"):
        SoftActorCritic(OBSERVATION, ACTIONS, initial_temperature=0.0)
