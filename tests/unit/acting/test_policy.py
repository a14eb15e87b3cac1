"""What an actor's policy gives: actions as the space has them, extra columns, settings that travel with weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest

from rollstream.acting import Policy
from rollstream.envs.collector import EpisodeAware
from rollstream.errors import NonFiniteError
from rollstream.graph import ActorCriticPolicy, QPolicy, build_acting
from rollstream.spaces import leaves

OBSERVATION = leaves(gymnasium.spaces.Box(-1.0, 1.0, (2,)), "observation")
ENVS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    version: int
    tensors: Mapping[str, npt.NDArray[Any]]


def policy_of(component: Any) -> Policy:
    return Policy(
        acting=build_acting(component, batch=ENVS, mode="numpy"),
        actions=component.actions,
        extra=component.extra_columns,
        generator=np.random.default_rng(0),
    )


def weights(component: Any, *, version: int = 1, more: Mapping[str, npt.NDArray[Any]] | None = None) -> Weights:
    acting = build_acting(component, batch=1, mode="numpy")
    return Weights(version=version, tensors={**acting.layout.split(acting.layout.init(0)), **(more or {})})


@pytest.mark.parametrize("bounds", ["clip", "squash"])
def test_actions_keep_the_bounds_of_a_float64_space_that_float32_would_pass(bounds: str) -> None:
    space = gymnasium.spaces.Box(-0.1, 0.1, (50,), np.float64)  # 0.1 in float32 is above 0.1
    component = ActorCriticPolicy(OBSERVATION, leaves(space, "action"), hidden=(), bounds=bounds)  # type: ignore[arg-type]
    policy = policy_of(component)
    policy.load(weights(component, more={"policy.log_std": np.full(50, 2.0, np.float32)}))
    actions = policy.act({"observation": np.ones((ENVS, 2), np.float32)})["action"]
    assert actions.dtype == np.float64
    assert np.abs(actions).max() == 0.1
    assert all(space.contains(action) for action in actions)


def test_settings_travel_with_the_weights() -> None:
    component = QPolicy(OBSERVATION, leaves(gymnasium.spaces.Discrete(1000), "action"), hidden=())
    policy = policy_of(component)
    observation = {"observation": np.ones((ENVS, 2), np.float32)}
    policy.load(weights(component, more={"scalar.epsilon": np.zeros(1, np.float32)}))
    assert len(set(policy.act(observation)["action"].tolist())) == 1
    policy.load(weights(component, version=2, more={"scalar.epsilon": np.ones(1, np.float32)}))
    assert len(set(policy.act(observation)["action"].tolist())) == ENVS
    assert policy.version == 2


def test_weights_that_are_not_finite_are_refused_and_the_old_ones_stay() -> None:
    component = ActorCriticPolicy(OBSERVATION, leaves(gymnasium.spaces.Discrete(2), "action"), hidden=())
    policy = policy_of(component)
    policy.load(weights(component))
    observation = {"observation": np.ones((ENVS, 2), np.float32)}
    before = policy.values(observation)
    with pytest.raises(NonFiniteError, match="parameter value.bias"):
        policy.load(weights(component, version=2, more={"value.bias": np.full(1, np.nan, np.float32)}))
    np.testing.assert_array_equal(policy.values(observation), before)
    assert policy.version == 1


def test_it_wants_to_know_of_episodes() -> None:
    component = ActorCriticPolicy(OBSERVATION, leaves(gymnasium.spaces.Discrete(2), "action"))
    assert isinstance(policy_of(component), EpisodeAware)
    assert not policy_of(component).follows_episodes
    assert policy_of(ActorCriticPolicy(OBSERVATION, component.actions, recurrent="gru")).follows_episodes
