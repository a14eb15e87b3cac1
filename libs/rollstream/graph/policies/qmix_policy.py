"""Agents that act by values of their own, and a mixing network that says what their actions are worth together (QMIX)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import numpy as np

from rollstream.errors import SpaceError
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.features import Features
from rollstream.graph.components.mixing import MonotonicMixing
from rollstream.graph.components.torso import Torso
from rollstream.graph.discrete import choices, index_to_value, require_discrete, value_to_index
from rollstream.graph.distributions import categorical, epsilon_greedy
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.ops import Activation, Array
from rollstream.graph.policies.masks import Masks
from rollstream.graph.scope import Scope, api
from rollstream.spaces import AgentSpaces, Column, Leaf, agents_of
from rollstream.spaces.agents import STATE, STATUS

__all__ = ["QmixPolicy"]

AGENT = "observation.agent"
"""Name of the leaf that tells the shared network for which agent it speaks."""


@dataclass(frozen=True)
class QmixPolicy:
    """One network values the actions of every agent, by what the agent sees and who it is; one mixes the values of chosen actions.

    Attributes:
        observation, actions: leaves of an environment with several agents of equal spaces, one Discrete action each. An agent's leaf
            `action_mask` is a mask. The mixing network reads the environment's state, or what all agents see where it has none.
        hidden, activation: of the agents' network.
        mixing_units, hyper_units: of the mixing network.
    """

    observation: tuple[Leaf, ...]
    actions: tuple[Leaf, ...]
    _: KW_ONLY
    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "relu"
    mixing_units: int = 32
    hyper_units: int = 64

    def __post_init__(self) -> None:
        if not self.agents:
            raise SpaceError(
                "observation: QmixPolicy needs an environment with several agents (a PettingZoo parallel environment); for one "
                "agent use dqn"
            )
        first = self.agents[0]
        for agent in self.agents:
            if (agent.observation, agent.actions) != (first.observation, first.actions):
                raise SpaceError(
                    f"observation.{agent.name}: QmixPolicy shares one network, but the spaces of {agent.name} differ from those of "
                    f"{first.name}; pad them in a wrapper, or use multi-ppo with a policy for each"
                )
            if len(agent.actions) != 1:
                raise SpaceError(
                    f"action.{agent.name}: QmixPolicy chooses one Discrete action an agent, not {len(agent.actions)}"
                )
        require_discrete(first.actions[0], where="QmixPolicy.act")
        _ = self._masks

    apis = ("act", "greedy", "agent_values", "joint_value")
    memory: tuple[Column, ...] = ()
    extra_columns: tuple[Column, ...] = ()

    @cached_property
    def agents(self) -> tuple[AgentSpaces, ...]:
        """The agents, in the order of `agent_values`."""
        return agents_of(self.observation, self.actions)

    @property
    def action_columns(self) -> tuple[Input, ...]:
        """What losses read of an action."""
        return columns_of(self.actions)

    def arguments(self, api: str) -> Arguments:
        observation = columns_of(self.observation)
        if api == "act":
            return {
                "observation": observation,
                "noise": Input(name="noise", shape=(len(self.agents), 2), role="noise"),
                "epsilon": Input(name="epsilon", role="scalar", low=0.0, high=1.0),
            }
        if api == "joint_value":
            return {"observation": observation, "q": Input(name="q", shape=(len(self.agents),))}
        return {"observation": observation}

    @api
    def act(self, scope: Scope, *, observation: Mapping[str, Array], noise: Array, epsilon: Array) -> dict[str, Array]:
        """The action of each agent [B].

        Shapes: noise [B, A, 2] uniform in [0, 1): whether to explore, and where to; epsilon [B].
        """
        ops, agents = scope.ops, len(self.agents)
        rows = noise.shape[0] * agents
        allowed = ops.constant(np.zeros((rows, choices(self._action)), np.float32))
        for mask in self._masks.of(self._each(scope, observation)).values():
            allowed = categorical.masked(ops, allowed, mask)
        index = epsilon_greedy.sample(
            ops,
            ops.reshape(self.agent_values(scope, observation=observation), (rows, choices(self._action))),
            ops.log_softmax(allowed),
            ops.reshape(noise, (rows, 2)),
            ops.reshape(ops.stack([epsilon] * agents, axis=1), (rows,)),
        )
        return self._by_agent(scope, ops.reshape(index, (noise.shape[0], agents)))

    @api
    def greedy(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """The action of highest value of each agent [B]; together they are the joint action of highest value."""
        return self._by_agent(scope, scope.ops.argmax(self.agent_values(scope, observation=observation)))

    @api
    def agent_values(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        """Value of each action of each agent, [B, A, choices]; far below all others where a mask forbids it."""
        each = self._each(scope, observation)
        values = self._head.output(scope.child("head"), self._torso.output(scope.child("torso"), each))
        for mask in self._masks.of(each).values():
            values = categorical.masked(scope.ops, values, mask)
        rows = values.shape[0] // len(self.agents)
        return scope.ops.reshape(values, (rows, len(self.agents), choices(self._action)))

    @api
    def joint_value(self, scope: Scope, *, observation: Mapping[str, Array], q: Array) -> Array:
        """Value [B] of the values q [B, A] of what each agent does. Whoever is not there counts as 0."""
        ops = scope.ops
        status = ops.to_float(observation[STATUS])
        there = status - 2.0 * ops.floor(status * 0.5)  # the lowest bit: Presence.ACTS
        state = self._state.output(scope.child("state"), observation)
        return self._mixing.output(scope.child("mixing"), q * there, state)

    def chosen(self, scope: Scope, action: Mapping[str, Array]) -> Array:
        """Which of `agent_values` belongs to each agent's action, int64 [B, A]."""
        ops = scope.ops
        own = [action[agent.joint(self._action.name)] for agent in self.agents]
        return ops.stack([value_to_index(ops, self._action, value) for value in own], axis=1)

    def _by_agent(self, scope: Scope, index: Array) -> dict[str, Array]:
        joint = [agent.joint(self._action.name) for agent in self.agents]
        return {name: index_to_value(self._action, index[:, place]) for place, name in enumerate(joint)}

    def _each(self, scope: Scope, observation: Mapping[str, Array]) -> dict[str, Array]:
        """Observations of all agents as rows [B * A, ...], agent after agent of each row, with who each is."""
        ops, agents = scope.ops, self.agents
        found = {}
        for leaf in agents[0].observation:
            columns = [observation[agent.joint(leaf.name)] for agent in agents]
            rows = columns[0].shape[0] * len(agents)
            found[leaf.name] = ops.reshape(ops.stack(columns, axis=1), (rows, *leaf.shape))
        found[AGENT] = ops.constant(np.tile(np.arange(len(agents), dtype=np.int64), rows // len(agents)))
        return found

    @property
    def _action(self) -> Leaf:
        return self.agents[0].actions[0]

    @cached_property
    def _masks(self) -> Masks:
        return Masks(self.agents[0].observation, self.agents[0].actions)

    @cached_property
    def _torso(self) -> Torso:
        who = Leaf(name=AGENT, kind="discrete", dtype="<i8", shape=(), counts=(len(self.agents),), starts=(0,))
        return Torso((*self.agents[0].observation, who), hidden=self.hidden, activation=self.activation)

    @cached_property
    def _head(self) -> Dense:
        return Dense(features=choices(self._action), gain=1.0)

    @cached_property
    def _state(self) -> Features:
        told = tuple(leaf for leaf in self.observation if leaf.name == STATE or leaf.name.startswith(f"{STATE}."))
        seen = tuple(replace(leaf, name=agent.joint(leaf.name)) for agent in self.agents for leaf in agent.observation)
        return Features(told or seen)

    @cached_property
    def _mixing(self) -> MonotonicMixing:
        return MonotonicMixing(units=self.mixing_units, hyper_units=self.hyper_units)
