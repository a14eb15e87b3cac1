"""Several policies that act together in one environment with several agents: what a single `Policy` is to one agent.

    row of N copies ─▶ for each policy: observations of its agents [N * agents] ─▶ Policy.act ─▶ back into the columns of the agents

Weights come in one blob, those of a policy under `<policy>/`. When an agent's episode begins and ends stands in the row itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.acting.policy import Policy, Weights
from rollstream.errors import ConfigError
from rollstream.spaces import AgentSpaces, Columns, Presence
from rollstream.spaces.agents import STATUS

__all__ = ["PolicyMember", "PolicySet", "WeightPart", "by_agent", "observed_by", "part_of", "tell_of_episodes"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyMember:
    """One policy of a set: it acts for `agents` in every copy, made for copies times agents rows."""

    name: str
    agents: tuple[AgentSpaces, ...]
    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPart:
    """The weights of one policy."""

    version: int
    tensors: Mapping[str, Array]


def part_of(weights: Weights, policy: str) -> WeightPart:
    """What stands under `<policy>/` in a blob, without that."""
    prefix = f"{policy}/"
    found = {name.removeprefix(prefix): tensor for name, tensor in weights.tensors.items() if name.startswith(prefix)}
    return WeightPart(version=weights.version, tensors=found)


def observed_by(agents: Sequence[AgentSpaces], observation: Columns) -> dict[str, Array]:
    """Observations [N, ...] of all agents as those of these [N * agents, ...], under the names that each alone would have."""
    names = [leaf.name for leaf in agents[0].observation]
    found = {name: np.stack([observation[agent.joint(name)] for agent in agents], axis=1) for name in names}
    return {name: column.reshape(-1, *column.shape[2:]) for name, column in found.items()}


class PolicySet:
    """Acts like a `Policy` in N copies of an environment with several agents.

    Attributes:
        version, tensors: of the weights loaded last; 0 and empty before.
        follows_episodes: policies are told of episodes here, by the status in each row.
    """

    follows_episodes = False

    def __init__(self, members: Sequence[PolicyMember]) -> None:
        self.version = 0
        self.tensors: Mapping[str, Array] = {}
        self._members = tuple(members)

    @property
    def memory(self) -> Columns:
        """Nothing that a caller could set: what policies remember stays with them."""
        return {}

    def load(self, weights: Weights) -> None:
        """Act with `weights` from now on."""
        for member in self._members:
            member.policy.load(part_of(weights, member.name))
        self.version, self.tensors = weights.version, weights.tensors

    def begin(self, *, first: npt.NDArray[np.bool_], over: npt.NDArray[np.bool_]) -> None:
        """Episodes of single agents are what counts; they are in the rows."""

    def act(self, observation: Columns) -> Columns:
        """Actions and extra columns of all agents, [N, ...], under the environment's names."""
        columns: dict[str, Array] = {}
        for member in self._members:
            tell_of_episodes(member, observation)
            columns |= by_agent(member.agents, member.policy.act(observed_by(member.agents, observation)))
        return columns

    def extras(self, observation: Columns) -> Columns:
        """The extra columns of observations that follow the last `act`, where nothing is done."""
        columns: dict[str, Array] = {}
        for member in self._members:
            columns |= by_agent(member.agents, member.policy.extras(observed_by(member.agents, observation)))
        return columns

    def greedy(self, observation: Columns) -> Columns:
        """The most probable (or most valuable) actions of all agents [N]."""
        columns: dict[str, Array] = {}
        for member in self._members:
            tell_of_episodes(member, observation)
            columns |= by_agent(member.agents, member.policy.greedy(observed_by(member.agents, observation)))
        return columns

    def values(self, observation: Columns, *, policy: str = "") -> npt.NDArray[np.float32]:
        """Values [N * agents] of the observations of the agents of `policy`, as `select_policies` cuts them out."""
        for member in self._members:
            if member.name == policy:
                return member.policy.values(observation)
        names = ", ".join(member.name for member in self._members)
        raise ConfigError(
            f"values of which policy? got {policy!r}, there are: {names}; put select_policies(...) before advantages"
        )


def tell_of_episodes(member: PolicyMember, observation: Columns) -> None:
    """Tell a policy where the episodes of its agents begin, and where nothing is done."""
    status = observation[STATUS][:, [agent.index for agent in member.agents]].reshape(-1)
    member.policy.begin(first=(status & Presence.FIRST) != 0, over=(status & Presence.ACTS) == 0)


def by_agent(agents: Sequence[AgentSpaces], answer: Columns) -> dict[str, Array]:
    """Columns [N * agents, ...] of a policy as columns [N, ...] of its agents, under the environment's names."""
    found: dict[str, Array] = {}
    for name, column in answer.items():
        each = column.reshape(-1, len(agents), *column.shape[1:])
        for place, agent in enumerate(agents):
            found[agent.joint(name)] = each[:, place]
    return found
