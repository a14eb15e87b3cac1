"""Several policies in one environment with several agents: each an algorithm's agent for the spaces of the agents that it plays.

leaves of the environment ─▶ agents ─▶ settings.policies: who plays whom ─▶ one Agent a policy ─▶ PolicyAgents
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rollstream.acting import ActorPlace, Policy
from rollstream.acting.league import League
from rollstream.acting.policy_set import PolicyMember, PolicySet
from rollstream.algorithms.agent import Agent
from rollstream.config import PolicySettings, agents_by_policy
from rollstream.errors import ConfigError, SpaceError
from rollstream.graph import build_acting
from rollstream.learning import LearningAgent, PolicyLearners
from rollstream.seeding import child_seed
from rollstream.spaces import AgentSpaces, Column, Leaf, PolicyView, RowSpec, agents_of, row_spec

__all__ = ["PolicyAgents", "PolicyPart", "make_policy", "parts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPart:
    """One policy: the agents that it plays, and the algorithm that learns it."""

    name: str
    agents: tuple[AgentSpaces, ...]
    agent: Agent

    @property
    def view(self) -> PolicyView:
        """What it sees of the environment."""
        first = self.agents[0]
        rows = row_spec(first.observation, first.actions, extra=self.agent.extra_columns)
        return PolicyView(name=self.name, agents=self.agents, rows=rows)


def parts(
    policies: Mapping[str, PolicySettings],
    make: Callable[[str, AgentSpaces], Agent],
    *,
    observation: Sequence[Leaf],
    actions: Sequence[Leaf],
) -> tuple[PolicyPart, ...]:
    """The policies of an environment with these leaves; `make` builds the agent of a policy for one of the agents it plays.

    Raises:
        ConfigError: agents and policies do not fit each other.
        SpaceError: there are no agents, or those of one policy have different spaces.
    """
    agents = {agent.name: agent for agent in agents_of(observation, actions)}
    if not agents:
        raise SpaceError(
            "observation: this algorithm is for environments with several agents (a PettingZoo parallel environment); for one "
            "agent use ppo or dqn"
        )
    found = []
    for name, played in agents_by_policy(policies, list(agents)).items():
        own = tuple(agents[agent] for agent in played)
        for other in own[1:]:
            if (other.observation, other.actions) != (own[0].observation, own[0].actions):
                raise SpaceError(
                    f"observation.{other.name}: policy {name!r} plays {own[0].name} and {other.name}, whose spaces differ; give "
                    "them policies of their own in settings.policies"
                )
        found.append(PolicyPart(name=name, agents=own, agent=make(name, own[0])))
    return tuple(found)


class PolicyAgents:
    """An `Agent` of several policies."""

    def __init__(self, config: Any, found: Sequence[PolicyPart], *, actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.parts = {part.name: part for part in found}

    @property
    def policy(self) -> Any:
        self._one_of("acts for itself")

    @property
    def loss(self) -> Any:
        self._one_of("has a loss of its own")

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        return tuple(
            replace(column, name=agent.joint(column.name))
            for part in self.parts.values()
            for agent in part.agents
            for column in part.agent.extra_columns
        )

    @property
    def table_names(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts.values() for name in part.agent.table_names)

    def tables(self, rows: RowSpec) -> Mapping[str, Any]:
        return {name: spec for part in self.parts.values() for name, spec in part.agent.tables(part.view.rows).items()}

    def view(self, policy: str) -> PolicyView:
        """What `policy` sees of the environment."""
        return self.parts[self._known(policy)].view

    def make_policy(self, *, envs: int, generator: np.random.Generator) -> PolicySet | League:
        """All policies, acting together in `envs` copies."""
        members = [
            PolicyMember(
                name=part.name,
                agents=part.agents,
                policy=make_policy(part.agent, envs=envs * len(part.agents), generator=generator),
            )
            for part in self.parts.values()
        ]
        return PolicySet(members)

    def learning(self, *, seed: int) -> LearningAgent:
        learners = {name: part.agent.learning(seed=child_seed(seed, "policy", name)) for name, part in self.parts.items()}
        tables = {table: name for name, part in self.parts.items() for table in part.agent.table_names}
        return PolicyLearners(learners, tables=tables)

    def _known(self, policy: str) -> str:
        if policy not in self.parts:
            raise ConfigError(f"there is no policy {policy!r}; settings.policies has: {', '.join(self.parts)}")
        return policy

    def _one_of(self, what: str) -> Any:
        raise ConfigError(f"each policy {what}, there are several: {', '.join(self.parts)}; ask one of `parts`")


def make_policy(agent: Agent, *, envs: int, generator: np.random.Generator, place: ActorPlace | None = None) -> Any:
    """What acts for `agent` in `envs` copies of its environment: a `Policy`, or several as a `PolicySet`.

    Args:
        place: which actor it acts in, for algorithms whose actors differ; None: in none, e.g. for an evaluation.
    """
    own = getattr(agent, "make_policy", None)
    if own is not None:
        return own(envs=envs, generator=generator)
    acting = build_acting(agent.policy, batch=envs)
    differ = getattr(agent, "own_settings", None)
    settings = None if differ is None or place is None else partial(differ, place=place, envs=envs)
    return Policy(acting=acting, actions=agent.actions, extra=agent.extra_columns, generator=generator, own_settings=settings)
