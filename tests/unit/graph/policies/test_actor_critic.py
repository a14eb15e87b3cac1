"""The policy with a value head, on a Discrete space; the other spaces are in test_spaces."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy, build_acting, declare
from rollstream.graph.memory import Memory
from rollstream.graph.reference import reference
from rollstream.spaces import Leaf


@pytest.fixture
def policy(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> ActorCriticPolicy:
    return ActorCriticPolicy((box(4),), (discrete(3, start=5),), hidden=(8,))


def test_the_first_policy_is_nearly_uniform(policy: ActorCriticPolicy, generator: np.random.Generator) -> None:
    acting = build_acting(policy, batch=64)
    acting.load(acting.layout.init(1))
    columns = acting.act({"observation": generator.standard_normal((64, 4)).astype(np.float32)}, generator)
    np.testing.assert_allclose(columns["log_prob"], math.log(1 / 3), atol=0.1)


def test_actions_are_values_counted_from_the_start_of_the_space(
    policy: ActorCriticPolicy, generator: np.random.Generator
) -> None:
    acting = build_acting(policy, batch=64)
    acting.load(acting.layout.init(1))
    columns = acting.act({"observation": np.zeros((64, 4), np.float32)}, generator)
    assert set(columns["action"].tolist()) == {5, 6, 7}
    assert columns["action"].dtype == np.int64


def test_acting_and_evaluating_agree_about_log_prob_and_value(policy: ActorCriticPolicy, generator: np.random.Generator) -> None:
    acting = build_acting(policy, batch=16)
    flat = acting.layout.init(1) + generator.normal(0, 0.3, acting.layout.size).astype(np.float32)
    acting.load(flat)
    observation = generator.standard_normal((16, 4)).astype(np.float32)
    columns = acting.act({"observation": observation}, generator)
    inputs = {"observation": observation, "action": columns["action"]}
    evaluated = reference(policy, api="evaluate", memory=Memory(layout=acting.layout, flat=flat), inputs=inputs)
    np.testing.assert_allclose(evaluated.log_prob, columns["log_prob"], rtol=1e-6)
    np.testing.assert_allclose(evaluated.value, columns["value"], rtol=1e-6)
    np.testing.assert_allclose(acting.values({"observation": observation}), columns["value"], rtol=1e-6)


def test_greedy_takes_the_most_likely_action(policy: ActorCriticPolicy, generator: np.random.Generator) -> None:
    acting = build_acting(policy, batch=1)
    flat = acting.layout.init(1) + generator.normal(0, 0.5, acting.layout.size).astype(np.float32)
    acting.load(flat)
    observation = np.repeat(generator.standard_normal((1, 4)).astype(np.float32), 3, 0)
    inputs: dict[str, Any] = {"observation": observation, "action": 5 + np.arange(3)}
    log_prob = reference(policy, api="evaluate", memory=Memory(layout=acting.layout, flat=flat), inputs=inputs).log_prob
    assert acting.greedy({"observation": observation[:1]})["action"].tolist() == [5 + int(np.argmax(log_prob))]


def test_a_separate_value_torso_has_parameters_of_its_own(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    policy = ActorCriticPolicy((box(4),), (discrete(2),), hidden=(8,), shared_torso=False)
    assert {"torso.0.weight", "value_torso.0.weight"} <= set(declare(policy).layout.names)


def test_a_policy_without_value_head_gives_and_estimates_no_values(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], generator: np.random.Generator
) -> None:
    policy = ActorCriticPolicy((box(4),), (discrete(2),), value=False)
    acting = build_acting(policy, batch=1)
    observation = {"observation": np.zeros((1, 4), np.float32)}
    assert set(acting.act(observation, generator)) == {"action", "log_prob"}
    with pytest.raises(ConfigError, match="ActorCriticPolicy.values: this policy estimates no state values"):
        acting.values(observation)
    with pytest.raises(ConfigError, match="this policy has no value head; build it with value=True"):
        reference(policy, api="values", memory=Memory(layout=acting.layout, flat=acting.layout.init(0)), inputs=observation)


def test_a_space_of_one_action_works(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], generator: np.random.Generator
) -> None:
    acting = build_acting(ActorCriticPolicy((box(4),), (discrete(1),)), batch=3)
    columns = acting.act({"observation": np.zeros((3, 4), np.float32)}, generator)
    assert columns["action"].tolist() == [0, 0, 0]
    assert columns["log_prob"].tolist() == [0.0, 0.0, 0.0]
