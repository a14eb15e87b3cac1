"""O32: Discrete(n, start=k) must get k to k+n-1, not 0 to n-1."""

from __future__ import annotations

import gymnasium
import numpy as np

from rollstream.graph import ActorCriticPolicy, QPolicy, build_acting
from rollstream.spaces import leaves


def test_o32_every_policy_gives_all_actions_of_the_space_and_only_those() -> None:
    space = gymnasium.spaces.Discrete(3, start=-1)
    (action,) = leaves(space, "action")
    observation = leaves(gymnasium.spaces.Box(-1.0, 1.0, (2,)), "observation")
    generator = np.random.default_rng(0)
    column = {"observation": np.zeros((200, 2), np.float32)}
    for policy, settings in (
        (ActorCriticPolicy(observation, (action,)), {}),
        (QPolicy(observation, (action,)), {"epsilon": 1.0}),
    ):
        acting = build_acting(policy, batch=200)
        acting.load(acting.layout.init(0))
        values = acting.act(column, generator, **settings)["action"]
        assert set(values.tolist()) == {-1, 0, 1}
        assert all(space.contains(value) for value in values)
        assert all(space.contains(value) for value in acting.greedy(column)["action"])


def test_o32_a_discrete_observation_is_counted_from_its_start() -> None:
    observation = leaves(gymnasium.spaces.Discrete(2, start=7), "observation")
    (action,) = leaves(gymnasium.spaces.Discrete(2), "action")
    acting = build_acting(ActorCriticPolicy(observation, (action,)), batch=2)
    acting.load(acting.layout.init(0))
    values = acting.values({"observation": np.array([7, 8])})
    assert values[0] != values[1]
