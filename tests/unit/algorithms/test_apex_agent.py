"""What Ape-X adds to DQN: each environment explores by its own epsilon, and rows hold what priorities are computed from."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.acting import ActorPlace
from rollstream.algorithms.apex.agent import ApexAgent
from rollstream.algorithms.apex.config import ApexConfig
from rollstream.algorithms.policies import make_policy
from rollstream.spaces import Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(4,)),)
ACTION = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(3,))


class Published:
    """Weights as actors pull them."""

    version = 1

    def __init__(self, agent: ApexAgent) -> None:
        self.tensors = agent.learning(seed=0).tensors(env_steps=1_000)


@pytest.fixture
def agent() -> ApexAgent:
    return ApexAgent(ApexConfig(batch_items=4), observation=OBSERVATION, actions=(ACTION,))


def test_epsilons_are_those_of_the_paper_over_all_environments_of_all_actors(agent: ApexAgent) -> None:
    """epsilon_i = 0.4^(1 + 7 i / 7) for 8 environments in two actors."""
    given = [agent.own_settings({"epsilon": 0.4}, place=ActorPlace(ordinal=ordinal, actors=2), envs=4) for ordinal in (0, 1)]
    assert np.concatenate([one["epsilon"] for one in given]) == pytest.approx([0.4 ** (1 + number) for number in range(8)])


def test_an_actor_beyond_the_number_wanted_explores_as_the_last_one(agent: ApexAgent) -> None:
    last, beyond = (agent.own_settings({"epsilon": 0.4}, place=ActorPlace(ordinal=number, actors=2), envs=1) for number in (1, 5))
    assert last["epsilon"] == pytest.approx([0.4**8]) == beyond["epsilon"]


def test_one_environment_alone_takes_epsilon_itself(agent: ApexAgent) -> None:
    alone = agent.own_settings({"epsilon": 0.4}, place=ActorPlace(ordinal=0, actors=1), envs=1)
    assert alone["epsilon"] == pytest.approx([0.4])


def test_the_policy_of_an_actor_acts_by_its_own_epsilons_and_tells_its_values(agent: ApexAgent) -> None:
    """With exponent 7, 2000 environments: those at one end take the other action in a fifth of the steps, at the other hardly ever."""
    envs = 2_000
    policy = make_policy(agent, envs=envs, generator=np.random.default_rng(0), place=ActorPlace(ordinal=0, actors=1))
    policy.load(Published(agent))
    observation = {"observation": np.ones((envs, 4), np.float32)}
    columns = policy.act(observation)
    best = int(policy.greedy({"observation": np.ones((1, 4), np.float32)})["action"][0])
    wrong = columns["action"] != best
    assert set(columns["action"].tolist()) == {3, 4}
    assert wrong[:200].mean() == pytest.approx(0.17, abs=0.06)
    assert wrong[-500:].mean() < 0.01
    assert (columns["q_taken"][~wrong] == columns["q_max"][~wrong]).all()
    assert (columns["q_taken"][wrong] < columns["q_max"][wrong]).all()
    assert [column.name for column in agent.extra_columns] == ["q_taken", "q_max"]
