"""The policy of SAC for one Discrete action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollstream.errors import ConfigError, SpaceError
from rollstream.graph import declare
from rollstream.graph.component_test import component_test
from rollstream.graph.policies import DiscreteSoftActorCritic
from rollstream.spaces import Leaf, leaves

OBSERVATION = leaves(gymnasium.spaces.Box(-1.0, 1.0, (3,)), "observation")
MASKED = leaves(
    gymnasium.spaces.Dict({"action_mask": gymnasium.spaces.MultiBinary(4), "x": gymnasium.spaces.Box(-1.0, 1.0, (3,))}),
    "observation",
)
ACTION = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(4,), starts=(-1,))


@pytest.fixture
def policy() -> DiscreteSoftActorCritic:
    return DiscreteSoftActorCritic(OBSERVATION, (ACTION,), hidden=(8,), initial_temperature=0.2)


def test_actions_are_those_of_the_environment(policy: DiscreteSoftActorCritic, trained: Callable[..., Any]) -> None:
    made = trained(policy, rows=200, scale=0.3)
    observation = {"observation": made.generator.standard_normal((200, 3)).astype(np.float32)}
    drawn = made.acting.act(observation, made.generator)
    assert sorted(set(drawn["action"].tolist())) == [-1, 0, 1, 2]
    assert np.all(drawn["log_prob"] < 0)


def test_what_a_mask_forbids_is_never_done(trained: Callable[..., Any]) -> None:
    made = trained(DiscreteSoftActorCritic(MASKED, (ACTION,), hidden=(8,)), rows=100)
    mask = np.zeros((100, 4), np.int8)
    mask[:, 2] = 1
    observation = {"observation.action_mask": mask, "observation.x": np.zeros((100, 3), np.float32)}
    assert set(made.acting.act(observation, made.generator)["action"].tolist()) == {1}
    assert set(made.acting.greedy(observation)["action"].tolist()) == {1}


def test_modes_agree_and_slopes_are_right(policy: DiscreteSoftActorCritic) -> None:
    component_test(policy)


def test_the_temperature_is_a_parameter(policy: DiscreteSoftActorCritic) -> None:
    layout = declare(policy).layout
    np.testing.assert_allclose(layout.split(layout.init(0))["log_alpha"], [np.log(0.2)], rtol=1e-6)


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(ConfigError, match="initial_temperature of DiscreteSoftActorCritic must be > 0, got 0"):
        DiscreteSoftActorCritic(OBSERVATION, (ACTION,), initial_temperature=0.0)
    with pytest.raises(SpaceError, match="DiscreteSoftActorCritic chooses one discrete action, but the environment asks for 2"):
        DiscreteSoftActorCritic(OBSERVATION, (ACTION, ACTION))
