"""Environments with several agents as one batch: columns, presence, rewards, ends, and what breaks the contract."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.algorithms import make_agent
from rollstream.algorithms.evaluation import LocalWeights
from rollstream.algorithms.policies import make_policy
from rollstream.config import EnvironmentSpec
from rollstream.envs import VectorEnvironment, inspect_environment, make_environment
from rollstream.envs.multi_agent import ParallelEnvironments, is_parallel
from rollstream.envs.multi_agent.toy import Meeting, Pursuit, TwoStepGame, Visitors
from rollstream.errors import ConfigError, EnvironmentFault
from rollstream.seeding import child_generator
from rollstream.spaces import Presence, agents_of, is_multi_agent
from rollstream.spaces.agents import REWARDS, STATE, STATUS

TOYS = "rollstream.envs.multi_agent.toy"
ACTS, FIRST, TERMINATED, TRUNCATED = Presence.ACTS, Presence.FIRST, Presence.TERMINATED, Presence.TRUNCATED


def made(name: str, *, envs: int = 1, **changes: Any) -> VectorEnvironment:
    spec = EnvironmentSpec(id=f"{TOYS}:{name}", **changes)
    environment = make_environment(spec, envs=envs, seed=1, allow=[TOYS])
    assert isinstance(environment, ParallelEnvironments)
    return environment


def acting(environment: VectorEnvironment, **chosen: int) -> dict[str, Any]:
    agents = [leaf.name.split(".")[1] for leaf in environment.action_leaves]
    return {f"action.{agent}": np.full(environment.envs, chosen.get(agent, 0), np.int64) for agent in agents}


def test_an_entry_point_that_builds_agents_gives_one_row_with_columns_for_each() -> None:
    environment = made("TwoStepGame", envs=3)
    assert [leaf.name for leaf in environment.action_leaves] == ["action.first", "action.second"]
    names = ["observation.first", "observation.second", STATUS, REWARDS, STATE]
    assert [leaf.name for leaf in environment.observation_leaves] == names
    columns = environment.reset()
    assert columns["observation.first"].tolist() == [[1.0, 0.0, 0.0]] * 3
    assert columns[STATUS].tolist() == [[ACTS | FIRST] * 2] * 3
    assert columns[STATE].tolist() == [[1.0, 0.0, 0.0]] * 3


def test_agents_are_read_back_from_the_leaves_as_if_each_were_alone() -> None:
    environment = made("Pursuit")
    agents = agents_of(environment.observation_leaves, environment.action_leaves)
    assert [agent.name for agent in agents] == ["hunter", "runner"]
    assert [leaf.name for leaf in (*agents[1].observation, *agents[1].actions)] == ["observation", "action"]
    assert agents[1].joint("observation") == "observation.runner"
    assert agents[1].joint("log_prob") == "log_prob.runner"
    plain = make_environment(EnvironmentSpec(id="CartPole-v1"), envs=1, seed=0)
    assert agents_of(plain.observation_leaves, plain.action_leaves) == ()
    assert not is_multi_agent(plain.observation_leaves)


def test_the_best_return_of_the_two_step_game_is_eight_and_the_safe_one_seven() -> None:
    environment = made("TwoStepGame")
    for side, pair, expected in ((1, 1, 8.0), (0, 0, 7.0), (1, 0, 0.0)):
        environment.reset()
        assert environment.step(acting(environment, first=side)).reward.tolist() == [0.0]
        last = environment.step(acting(environment, first=pair, second=pair))
        assert (last.reward.tolist(), last.terminated.tolist(), last.truncated.tolist()) == ([expected], [True], [False])
        assert last.final is not None
        assert last.final.observation[REWARDS].tolist() == [[expected, expected]]
        assert last.final.observation[STATUS].tolist() == [[TERMINATED, TERMINATED]]
        assert last.observation[STATUS].tolist() == [[ACTS | FIRST] * 2]


def test_agents_that_come_and_go_are_told_by_the_status_of_each_row() -> None:
    environment = made("Visitors")
    rows = [environment.reset()]
    for _ in range(5):
        rows.append(environment.step(acting(environment)).observation)
    last = environment.step(acting(environment))
    assert last.final is not None
    host, early, late, brief = np.concatenate([*(row[STATUS] for row in rows), last.final.observation[STATUS]]).T.tolist()
    assert host == [ACTS | FIRST, ACTS, ACTS, ACTS, ACTS, ACTS, TRUNCATED]
    assert early == [ACTS | FIRST, ACTS, TERMINATED, 0, 0, 0, 0]
    assert brief == [0, 0, ACTS | FIRST, TERMINATED, 0, 0, 0]
    assert late == [0, 0, 0, ACTS | FIRST, ACTS, ACTS, TRUNCATED]
    assert (last.terminated.tolist(), last.truncated.tolist()) == ([False], [True])
    assert rows[3]["observation.late"].tolist() == [[2, 0, 0]]
    assert rows[2]["observation.late"].tolist() == [[0, 0, 0]]  # it is not there
    assert rows[2][REWARDS].tolist() == [[1.0, 11.0, 0.0, 0.0]]
    assert last.reward.tolist() == [(5.0 + 22.0) / 4]


def test_a_limit_of_steps_truncates_whoever_is_there() -> None:
    environment = made("Visitors", max_episode_steps=1)
    environment.reset()
    step = environment.step(acting(environment))
    assert step.final is not None
    assert step.final.observation[STATUS].tolist() == [[TRUNCATED, TRUNCATED, 0, 0]]
    assert step.truncated.tolist() == [True]


def test_copies_are_seeded_apart_and_the_same_again() -> None:
    rows = [made("Meeting", envs=4).reset()["observation.agent_0"] for _ in range(2)]
    assert rows[0].tolist() == rows[1].tolist()
    assert len({tuple(row) for row in rows[0].tolist()}) > 1


def test_the_hunter_wins_by_meeting_the_runner_and_the_runner_by_lasting() -> None:
    environment = made("Pursuit", kwargs={"size": 2, "steps": 3})
    environment.reset()
    steps = [environment.step(acting(environment)) for _ in range(3)]
    assert steps[2].final is not None
    assert steps[2].final.observation[REWARDS].tolist() == [[-1.0, 1.0]]
    assert steps[2].reward.tolist() == [0.0]


def test_inspection_knows_the_leaves_of_all_agents() -> None:
    info = inspect_environment(EnvironmentSpec(id=f"{TOYS}:Meeting", kwargs={"agents": 3}), allow=[TOYS])
    assert len(agents_of(info.observation_leaves, info.action_leaves)) == 3


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"vectorization": "sync"}, "has several agents; environment.vectorization does nothing there: leave it out"),
        ({"autoreset": "next_step"}, "has several agents, whose copies are stepped one after another"),
    ],
)
def test_ways_of_vectorizing_are_refused(setting: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        made("Meeting", **setting)


def test_bounds_are_not_checked_silently() -> None:
    with pytest.raises(ConfigError, match="has several agents; environment.out_of_bounds does nothing there"):
        made("Meeting", out_of_bounds="clip")


class Broken(TwoStepGame):
    """A game that breaks the contract in one way."""

    def __init__(self, *, fault: str) -> None:
        super().__init__()
        self.fault = fault
        if fault == "dot":
            self.possible_agents = ["a.b", "second"]
        if fault == "none":
            self.possible_agents = []

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        observations, infos = super().reset(seed, options)
        self.agents = [] if self.fault == "empty" else self.agents
        return observations, infos

    def step(self, actions: Any) -> Any:
        if self.fault == "raises":
            raise RuntimeError("out of fuel")
        observations, rewards, terminated, truncated, infos = super().step(actions)
        if self.fault == "reward":
            del rewards["second"]
        if self.fault == "observation":
            del observations["second"]
        if self.fault == "left":
            self.agents = ["first"]
        if self.fault == "stranger":
            self.agents = [*self.agents, "third"]
        return observations, rewards, terminated, truncated, infos


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("empty", "in reset: began an episode without any agent"),
        ("raises", "raised RuntimeError in step: out of fuel"),
        ("reward", "no reward for agent 'second', which acted"),
        ("observation", "no observation for agent 'second'"),
        ("left", "agent 'second' left, but is neither terminated nor truncated"),
        ("stranger", "agent 'third' is not one of its possible_agents: first, second"),
    ],
)
def test_what_breaks_the_contract_is_named_with_copy_and_agent(fault: str, message: str) -> None:
    environment = ParallelEnvironments(lambda: Broken(fault=fault), name="broken", seeds=[0])
    with pytest.raises(EnvironmentFault, match=message):
        environment.reset()
        environment.step(acting(environment))


@pytest.mark.parametrize(("fault", "message"), [("dot", "an agent cannot be called 'a.b'"), ("none", "possible_agents is empty")])
def test_names_of_agents_must_serve_as_names_of_columns(fault: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ParallelEnvironments(lambda: Broken(fault=fault), name="broken", seeds=[0])


def test_what_takes_turns_is_not_parallel() -> None:
    assert is_parallel(Meeting()) and is_parallel(Pursuit()) and is_parallel(Visitors())
    assert not is_parallel(object())


@pytest.mark.parametrize("name", ["pettingzoo:sisl", "pettingzoo:../etc.passwd"])
def test_a_pettingzoo_environment_is_named_by_family_and_module(name: str) -> None:
    with pytest.raises(ConfigError, match=r"name it as pettingzoo:<family>.<module>"):
        make_environment(EnvironmentSpec(id=name), envs=1, seed=0)


def test_an_unknown_pettingzoo_environment_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match=r"cannot be imported: .*; install rollstream\[multi-agent\]"):
        make_environment(EnvironmentSpec(id="pettingzoo:sisl.no_such_game"), envs=1, seed=0)


def test_simple_spread_of_pettingzoo_has_three_agents_and_a_state() -> None:
    spec = EnvironmentSpec(id="pettingzoo:mpe.simple_spread_v3", kwargs={"max_cycles": 3})
    environment = make_environment(spec, envs=2, seed=0)
    columns = environment.reset()
    assert columns["observation.agent_2"].shape == (2, 18)
    assert columns[STATE].shape == (2, 54)
    steps = [environment.step(acting(environment)) for _ in range(3)]
    assert steps[-1].truncated.tolist() == [True, True]
    environment.close()


class Masked(Visitors):
    """Each agent may do one thing alone: that of its place modulo 3; in its last observation nothing at all."""

    def observation_space(self, agent: str) -> Any:
        from gymnasium import spaces

        return spaces.Dict({"seen": spaces.Box(0, 1, (1,), np.float32), "action_mask": spaces.MultiBinary(3)})

    def step(self, actions: Any) -> Any:
        wrong = {agent: action for agent, action in actions.items() if action != self.possible_agents.index(agent) % 3}
        if wrong:
            raise ValueError(f"forbidden: {wrong}")
        return super().step(actions)

    def _observe(self, agent: str) -> Any:
        leaves = self._step == {name: until for name, _, until, _ in self.STAYS}[agent]
        mask = np.zeros(3, np.int8) if leaves else np.eye(3, dtype=np.int8)[self.possible_agents.index(agent) % 3]
        return {"seen": np.zeros(1, np.float32), "action_mask": mask}


@pytest.mark.parametrize("algorithm", ["qmix", "multi-ppo"])
def test_each_agent_keeps_to_its_own_mask_and_last_observations_need_none(algorithm: str) -> None:
    environment = ParallelEnvironments(Masked, name="masked", seeds=[0, 1])
    agent: Any = make_agent(
        algorithm, {"hidden": [4]}, observation=environment.observation_leaves, actions=environment.action_leaves
    )
    policy = make_policy(agent, envs=2, generator=child_generator(0, "act"))
    policy.load(LocalWeights(version=1, tensors=agent.learning(seed=0).tensors(env_steps=0)))
    observation = environment.reset()
    for _ in range(13):
        observation = environment.step(policy.act(observation)).observation
    assert observation["observation.early.action_mask"].tolist() == [[0, 1, 0]] * 2  # an episode has just begun
