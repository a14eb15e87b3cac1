"""Recurrent policies: what is remembered, where it is forgotten, and that sequences give what single steps gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import gymnasium
import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.component_test import component_test
from rollstream.graph.scope import Scope
from rollstream.spaces import leaves

OBSERVATION = leaves(gymnasium.spaces.Box(-1.0, 1.0, (3,)), "observation")
ACTIONS = leaves(gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(3), "b": gymnasium.spaces.Box(-1.0, 1.0, (2,))}), "action")
STEPS, ENVS = 7, 5


def made_policy(kind: Literal["lstm", "gru"], *, shared_torso: bool = True) -> ActorCriticPolicy:
    return ActorCriticPolicy(
        OBSERVATION, ACTIONS, hidden=(8,), recurrent=kind, recurrent_units=4, shared_torso=shared_torso, autoregressive=True
    )


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("shared_torso", [True, False])
def test_a_sequence_is_judged_as_its_steps_were(
    trained: Callable[..., Any], kind: Literal["lstm", "gru"], shared_torso: bool
) -> None:
    policy = made_policy(kind, shared_torso=shared_torso)
    made = trained(policy, rows=ENVS)
    first = np.zeros((ENVS, STEPS), np.float32)
    first[:, 0], first[2, 3], first[4, 5] = 1, 1, 1
    steps = []
    for step in range(STEPS):
        observation = {"observation": made.generator.standard_normal((ENVS, 3)).astype(np.float32)}
        made.policy.begin(first=first[:, step] > 0, over=np.zeros(ENVS, bool))
        steps.append({**observation, **made.policy.act(observation)})
    start = 2  # in the middle of episodes: from the state that the row holds
    names = ["observation", *(item.name for item in policy.action_columns)]
    inputs = {name: np.stack([step[name] for step in steps[start:]], 1) for name in names}
    inputs |= {column.name: steps[start][column.name] for column in policy.memory} | {"first": first[:, start:]}
    judged = made.reference("evaluate_sequence", inputs)
    for name, found in (("log_prob", judged.log_prob), ("value", judged.value)):
        np.testing.assert_allclose(found, np.stack([step[name] for step in steps[start:]], 1), rtol=2e-4, atol=2e-5)


def test_rows_hold_what_was_remembered_before_the_step(trained: Callable[..., Any]) -> None:
    made = trained(made_policy("gru"), rows=ENVS)
    observation = {"observation": np.ones((ENVS, 3), np.float32)}
    before = made.policy.act(observation)["recurrent.torso"]
    after = made.policy.act(observation)["recurrent.torso"]
    assert (before == 0).all()
    assert (after != 0).any()
    made.policy.begin(first=np.array([False, True, False, False, True]), over=np.zeros(ENVS, bool))
    at_begin = made.policy.act(observation)["recurrent.torso"]
    assert (at_begin[[1, 4]] == 0).all()
    assert (at_begin[[0, 2, 3]] != 0).any(axis=1).all()


def test_an_episode_that_begins_anew_acts_as_the_first_one(trained: Callable[..., Any]) -> None:
    made = trained(made_policy("lstm"), rows=ENVS)
    observation = {"observation": np.ones((ENVS, 3), np.float32)}
    begin = np.ones(ENVS, bool)
    at_first = made.policy.act(observation)["value"]
    assert (made.policy.act(observation)["value"] != at_first).all()
    made.policy.begin(first=begin, over=~begin)
    np.testing.assert_array_equal(made.policy.act(observation)["value"], at_first)


def test_values_and_extras_continue_from_the_state_and_leave_it(trained: Callable[..., Any]) -> None:
    made, other = trained(made_policy("lstm"), rows=ENVS), trained(made_policy("lstm"), rows=ENVS)
    observation = {"observation": np.ones((ENVS, 3), np.float32)}
    made.policy.act(observation), other.policy.act(observation)
    value, extras = made.policy.values(observation), made.policy.extras(observation)
    second, expected = made.policy.act(observation), other.policy.act(observation)
    np.testing.assert_array_equal(second["value"], expected["value"])
    np.testing.assert_allclose(value, expected["value"], rtol=1e-5)
    np.testing.assert_array_equal(extras["value"], expected["value"])
    np.testing.assert_array_equal(extras["recurrent.torso"], expected["recurrent.torso"])


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_greedy_remembers_too(trained: Callable[..., Any], kind: Literal["lstm", "gru"]) -> None:
    made = trained(made_policy(kind, shared_torso=False), rows=ENVS)
    observation = {"observation": np.ones((ENVS, 3), np.float32)}
    found = [made.policy.greedy(observation)["action.b"] for _ in range(2)]
    assert (found[0] != found[1]).any()


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_modes_agree(kind: Literal["lstm", "gru"]) -> None:
    component_test(made_policy(kind, shared_torso=False), modes=("numpy", "torch"))


def test_single_steps_of_a_recurrent_policy_are_not_judged(trained: Callable[..., Any]) -> None:
    made = trained(made_policy("gru"), rows=1)
    with pytest.raises(ConfigError, match="a recurrent policy judges whole sequences; use evaluate_sequence"):
        made.component.evaluate(Scope(NumpyOps()), observation={}, action={})
