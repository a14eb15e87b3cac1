"""Rows of one policy's agents, cut out of rows that hold all: every row, flag, reward and episode, also across rollouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, make_environment
from rollstream.errors import ConfigError
from rollstream.flow.steps.select_policies import PolicyRows, select_policies
from rollstream.spaces import AgentSpaces, Column, Columns, Flag, PolicyView, Rollout, agents_of, row_spec

TOYS = "rollstream.envs.multi_agent.toy"
EXTRA = (Column(name="value", dtype="<f4"),)
FIRST, TERMINATED, TRUNCATED = int(Flag.FIRST), int(Flag.FINAL | Flag.TERMINATED), int(Flag.FINAL | Flag.TRUNCATED)
STAYS = {"host": (0, 6, TRUNCATED), "early": (0, 2, TERMINATED), "late": (3, 6, TRUNCATED), "brief": (2, 3, TERMINATED)}
"""When each agent of `Visitors` comes and leaves, and how."""


class Seer:
    """Values what it sees: 100 * agent + 10 * episode + steps since the agent came; does the steps modulo 3."""

    def __init__(self, agents: tuple[AgentSpaces, ...]) -> None:
        self.agents = agents

    def act(self, observation: Columns) -> Columns:
        found: dict[str, npt.NDArray[Any]] = {}
        for agent in self.agents:
            seen = observation[f"observation.{agent.name}"]
            found[f"action.{agent.name}"] = seen[:, 2] % 3
            found[f"value.{agent.name}"] = (seen @ [100, 10, 1]).astype(np.float32)
        return found


def play(*, steps: list[int], envs: int = 2) -> tuple[list[Rollout], tuple[AgentSpaces, ...]]:
    """Rollouts of `Visitors`, whose episodes have 6 steps."""
    environment = make_environment(EnvironmentSpec(id=f"{TOYS}:Visitors"), envs=envs, seed=0, allow=[TOYS])
    agents = agents_of(environment.observation_leaves, environment.action_leaves)
    extra = tuple(Column(name=f"value.{agent.name}", dtype="<f4") for agent in agents)
    rows = row_spec(environment.observation_leaves, environment.action_leaves, extra=extra)
    collector = Collector(environment, row_spec=rows, policy=Seer(agents), clock=FakeClock())
    return [collector.collect(count, version=7) for count in steps], agents


def view(agents: tuple[AgentSpaces, ...]) -> PolicyView:
    rows = row_spec(agents[0].observation, agents[0].actions, extra=EXTRA)
    return PolicyView(name="seer", agents=agents, rows=rows)


def expected(name: str, *, place: int, episodes: int) -> list[tuple[int, list[int], int, float, float]]:
    """(flags, observation, action, reward, value) of the rows of an agent in whole episodes, from the table above."""
    comes, leaves, end = STAYS[name]
    found = []
    for episode in range(episodes):
        for since in range(leaves - comes + 1):
            is_final = since == leaves - comes
            flags = end if is_final else FIRST if since == 0 else 0
            reward = 0.0 if is_final else 10.0 * place + since
            value = 100.0 * place + 10.0 * episode + since
            found.append((flags, [place, episode, since], 0 if is_final else since % 3, reward, value))
    return found


def rows_of(rollouts: list[Rollout], environment: int) -> list[tuple[int, list[int], int, float, float]]:
    parts = [rollout.rows[rollout.offsets[environment] : rollout.offsets[environment + 1]] for rollout in rollouts]
    rows = np.concatenate(parts)
    names = ("flags", "observation", "action", "reward", "value")
    return list(zip(*(rows[name].tolist() for name in names), strict=True))


@pytest.mark.parametrize("steps", [[12], [1] * 12, [2, 1, 3, 5, 1], [5, 7]])
def test_each_agent_has_its_own_rows_however_rollouts_are_cut(steps: list[int]) -> None:
    rollouts, agents = play(steps=steps)
    cut = PolicyRows(view(agents))
    found = []
    for rollout in rollouts:
        found.append(cut.of(rollout))
        late = found[-1].rows[cut.ended_late]
        found[-1].rows["value"][cut.ended_late] = late["observation"] @ [100, 10, 1]  # as the policy would value it
    for copy in range(2):
        for agent in agents:
            got = rows_of(found, copy * len(agents) + agent.index)
            assert got == expected(agent.name, place=agent.index, episodes=2), (agent.name, copy)
    assert sum(rollout.env_steps for rollout in found) == 2 * 12
    assert {rollout.policy for rollout in found} == {"seer"}


@pytest.mark.parametrize("steps", [[12], [1] * 12, [2, 1, 3, 5, 1]])
def test_episodes_are_the_stays_of_agents(steps: list[int]) -> None:
    rollouts, agents = play(steps=steps, envs=1)
    cut = PolicyRows(view(agents))
    episodes = [cut.of(rollout).episodes for rollout in rollouts]
    told = [(*pair,) for part in episodes for pair in zip(part.returns.tolist(), part.lengths.tolist(), strict=True)]
    stays = {name: leaves - comes for name, (comes, leaves, _) in STAYS.items()}
    returns = [(sum(10.0 * place + since for since in range(stays[name])), stays[name]) for place, name in enumerate(stays)]
    assert sorted(told) == sorted(returns * 2)


def test_a_policy_has_the_rows_of_its_own_agents_alone_and_the_observations_that_follow() -> None:
    (rollout,), agents = play(steps=[2], envs=3)
    selected = PolicyRows(view((agents[0], agents[2]))).of(rollout)
    assert np.diff(selected.offsets).tolist() == [2, 0] * 3  # the third comes after step 3
    assert selected.next_observation["observation"].tolist() == [[0, 0, 2], [0, 0, 0]] * 3
    assert selected.rows["version"].tolist() == [7] * 6


def test_rows_of_a_policy_that_is_drawn_are_those_in_which_it_plays() -> None:
    (rollout,), agents = play(steps=[6], envs=1)
    names = [f"learns.{agent.name}" for agent in agents]
    wide = np.zeros(len(rollout.rows), np.dtype([*rollout.rows.dtype.descr, *((name, "u1") for name in names)]))
    for name in rollout.rows.dtype.names or ():
        wide[name] = rollout.rows[name]
    wide["learns.early"] = 1
    drawn = PolicyView(name="seer", agents=agents, rows=view(agents).rows, drawn=True)
    selected = PolicyRows(drawn).of(
        Rollout(
            rows=wide,
            offsets=rollout.offsets,
            next_observation=rollout.next_observation,
            version=7,
            env_steps=6,
            episodes=rollout.episodes,
        )
    )
    assert np.diff(selected.offsets).tolist() == [0, 3, 0, 0]


def test_a_policy_must_be_named() -> None:
    with pytest.raises(ConfigError, match="select_policies needs the name of a policy"):
        select_policies("")
