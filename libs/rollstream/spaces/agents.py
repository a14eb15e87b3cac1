"""Several agents in one environment, told by the names of its leaves, so that everything that knows leaves needs nothing else.

    observation.<agent>[...]   action.<agent>[...]      what each agent sees and does, as in a Dict space with one key an agent
    observation.all.status     [A] what each agent does in this row, see `Presence`
    observation.all.reward     [A] what each agent was paid for the row before
    observation.all.state      what a critic may know beyond the agents, where the environment tells it

So one row of the environment holds all agents, and the rows of one agent are cut out of it (`flow.steps.select_policies`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntFlag

from rollstream.spaces.leaf import Leaf
from rollstream.spaces.row_spec import RowSpec

__all__ = ["ALL", "REWARDS", "STATE", "STATUS", "AgentSpaces", "PolicyView", "Presence", "agents_of", "is_multi_agent"]

ALL = "all"
"""Stands where the name of an agent would, for what concerns all of them; no agent may be called so."""
STATUS, REWARDS, STATE = (f"observation.{ALL}.{name}" for name in ("status", "reward", "state"))


class Presence(IntFlag):
    """What an agent does in a row; 0: it is not there."""

    ACTS = 1
    """It sees this observation and acts."""
    FIRST = 2
    """It has just begun, or just joined."""
    TERMINATED = 4
    """This observation is its last, for it is done."""
    TRUNCATED = 8
    """This observation is its last, for time is up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpaces:
    """One agent, with its leaves as if it were alone (`observation`, `action`).

    Attributes:
        index: its place in `status` and `reward`.
        columns: the environment's name of each of its columns, by its own name.
    """

    name: str
    index: int
    observation: tuple[Leaf, ...]
    actions: tuple[Leaf, ...]
    columns: Mapping[str, str]

    def joint(self, own: str) -> str:
        """How the environment's row calls the column `own` (`value`, `recurrent.h`) of this agent."""
        return self.columns.get(own) or f"{own}.{self.name}"


def is_multi_agent(observation: Sequence[Leaf]) -> bool:
    """Whether these are the leaves of an environment with several agents."""
    return any(leaf.name == STATUS for leaf in observation)


def agents_of(observation: Sequence[Leaf], actions: Sequence[Leaf]) -> tuple[AgentSpaces, ...]:
    """The agents of an environment with these leaves, in their order; none when it is one for a single agent."""
    if not is_multi_agent(observation):
        return ()
    names = list(dict.fromkeys(leaf.name.split(".")[1] for leaf in actions))
    return tuple(_agent(name, index, observation, actions) for index, name in enumerate(names))


def _agent(name: str, index: int, observation: Sequence[Leaf], actions: Sequence[Leaf]) -> AgentSpaces:
    own = {kind: [leaf for leaf in found if _is_of(leaf, kind, name)] for kind, found in _kinds(observation, actions)}
    alone = {kind: tuple(replace(leaf, name=_alone(leaf.name)) for leaf in found) for kind, found in own.items()}
    return AgentSpaces(
        name=name,
        index=index,
        observation=alone["observation"],
        actions=alone["action"],
        columns={_alone(leaf.name): leaf.name for found in own.values() for leaf in found},
    )


def _kinds(observation: Sequence[Leaf], actions: Sequence[Leaf]) -> tuple[tuple[str, Sequence[Leaf]], ...]:
    return (("observation", observation), ("action", actions))


def _is_of(leaf: Leaf, kind: str, agent: str) -> bool:
    return leaf.name == f"{kind}.{agent}" or leaf.name.startswith(f"{kind}.{agent}.")


def _alone(name: str) -> str:
    kind, _, *rest = name.split(".")
    return ".".join([kind, *rest])


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyView:
    """What one policy sees of an environment with several agents.

    Attributes:
        name: of the policy.
        agents: those that it plays.
        rows: layout of the rows of one of them.
        drawn: whether it plays them in some episodes only. Then the column `learns` of an agent's row tells: 0, somebody else plays;
            1, it plays; 2, it plays against itself, and the episode's return says nothing.
    """

    name: str
    agents: tuple[AgentSpaces, ...]
    rows: RowSpec
    drawn: bool = False
