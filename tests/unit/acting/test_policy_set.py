"""Several policies acting in one environment: each for its agents, by its own part of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rollstream.acting.policy_set import PolicySet
from rollstream.algorithms import make_agent
from rollstream.envs.multi_agent import ParallelEnvironments
from rollstream.envs.multi_agent.toy import Meeting
from rollstream.errors import ConfigError
from rollstream.seeding import child_generator
from rollstream.spaces import Presence
from rollstream.spaces.agents import STATUS

ENVS = 3


@dataclass(frozen=True)
class Published:
    version: int
    tensors: dict[str, Any]


def made(**settings: Any) -> tuple[PolicySet, ParallelEnvironments, dict[str, Any]]:
    environment = ParallelEnvironments(lambda: Meeting(agents=3), name="meeting", seeds=range(ENVS))
    policies = {"even": {"agents": ["agent_[02]"]}, "odd": {}}
    agent: Any = make_agent(
        "multi-ppo",
        {"policies": policies, "hidden": [4], **settings},
        observation=environment.observation_leaves,
        actions=environment.action_leaves,
    )
    policy = agent.make_policy(envs=ENVS, generator=child_generator(0, "act"))
    return policy, environment, dict(agent.learning(seed=0).tensors(env_steps=0))


def test_every_agent_acts_by_the_weights_of_its_policy() -> None:
    policy, environment, tensors = made()
    last = np.array([0, 0, 90], np.float32)
    tensors |= {name: np.zeros_like(tensor) for name, tensor in tensors.items()}
    tensors["even/policy.bias"], tensors["odd/policy.bias"] = last, last[::-1].copy()
    policy.load(Published(4, tensors))
    answer = policy.act(environment.reset())
    assert {agent: answer[f"action.agent_{agent}"].tolist() for agent in range(3)} == {0: [2] * 3, 1: [0] * 3, 2: [2] * 3}
    assert answer["value.agent_1"].shape == (ENVS,)
    assert policy.version == 4
    assert policy.greedy(environment.reset())["action.agent_2"].tolist() == [2] * 3
    assert set(policy.extras(environment.reset())) == {
        f"{name}.agent_{agent}" for name in ("log_prob", "value") for agent in range(3)
    }


def test_values_are_those_of_one_policy() -> None:
    policy, environment, tensors = made()
    tensors |= {name: np.zeros_like(tensor) for name, tensor in tensors.items()}
    tensors["odd/value.bias"] = np.array([7.0], np.float32)
    policy.load(Published(1, tensors))
    seen = {"observation": environment.reset()["observation.agent_1"]}
    assert policy.values(seen, policy="odd").tolist() == [7.0] * ENVS
    assert policy.values({"observation": np.zeros((2 * ENVS, 3), np.float32)}, policy="even").tolist() == [0.0] * 2 * ENVS
    with pytest.raises(ConfigError, match="values of which policy. got '', there are: even, odd"):
        policy.values(seen)


def test_what_is_remembered_of_an_agent_is_forgotten_when_its_episode_begins() -> None:
    policy, environment, tensors = made(recurrent="gru", recurrent_units=2)
    policy.load(Published(1, tensors))
    observation = environment.reset()
    policy.act(observation)
    observation[STATUS][:] = Presence.ACTS
    observation[STATUS][0, 1] = Presence.ACTS | Presence.FIRST
    answer = policy.act(observation)
    names = [name for name in answer if name.startswith("recurrent") and name.endswith(".agent_1")]
    remembered = np.concatenate([answer[name] for name in names], axis=1)
    assert names and not remembered[0].any()
    assert remembered[1:].any(axis=1).all()
