"""One policy that learns, against itself and against frozen snapshots of what it was: who plays against whom is drawn for each episode.

    weights  <policy>/<tensor>                what learns now
             <policy>/<snapshot>/<tensor>     frozen: a growing set, bounded by the learner
    episode  draw ─▶ a mirror match: it plays every agent, and learns from all
                  ╰▶ a snapshot: it plays one agent (drawn too) and learns from that; the snapshot plays the others

Draws come from a seeded generator of the actor. Who learns stands in the column `learns.<agent>` of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.acting.policy import Policy, Weights
from rollstream.acting.policy_set import PolicyMember, WeightPart, by_agent, observed_by, part_of, tell_of_episodes
from rollstream.spaces import AgentSpaces, Column, Columns

__all__ = ["LEARNS", "League", "snapshots_in"]

LEARNS = Column(name="learns", dtype="|u1")
"""Of each agent's row: 0, a snapshot plays; 1, the learning policy plays; 2, it plays all agents (a mirror match)."""
MIRROR = -1
Array = npt.NDArray[Any]


def snapshots_in(tensors: Mapping[str, Array]) -> dict[int, dict[str, Array]]:
    """Tensors of each snapshot in the weights of a policy, by its number."""
    found: dict[int, dict[str, Array]] = {}
    for name, tensor in tensors.items():
        number, slash, rest = name.partition("/")
        if slash:
            found.setdefault(int(number), {})[rest] = tensor
    return found


class League:
    """Acts like a `PolicySet` of one policy in N copies.

    Args:
        member: the learning policy, made for all agents of N copies.
        opponent: makes the policy of a snapshot, for as many rows.
        latest_share: probability of a mirror match, while there are snapshots.
        generator: of the draws.

    Attributes:
        opponents: [N], the snapshot that each copy's episode is played against; -1 in a mirror match.
        seats: [N], the place of the agent that learns.
    """

    follows_episodes = True

    def __init__(
        self,
        member: PolicyMember,
        *,
        envs: int,
        opponent: Callable[[], Policy],
        latest_share: float,
        generator: np.random.Generator,
    ) -> None:
        self.version = 0
        self.tensors: Mapping[str, Array] = {}
        self.opponents = np.full(envs, MIRROR, np.int64)
        self.seats = np.zeros(envs, np.int64)
        self._member = member
        self._opponent = opponent
        self._latest_share = latest_share
        self._generator = generator
        self._snapshots: dict[int, dict[str, Array]] = {}
        self._frozen: dict[int, PolicyMember] = {}

    @property
    def memory(self) -> Columns:
        """Nothing that a caller could set."""
        return {}

    def load(self, weights: Weights) -> None:
        """Act with `weights` from now on. Episodes under way end against the snapshot that they began with."""
        part = part_of(weights, self._member.name)
        own = {name: tensor for name, tensor in part.tensors.items() if "/" not in name}
        self._member.policy.load(WeightPart(version=part.version, tensors=own))
        self._snapshots = snapshots_in(part.tensors)
        self.version, self.tensors = weights.version, weights.tensors

    def begin(self, *, first: npt.NDArray[np.bool_], over: npt.NDArray[np.bool_]) -> None:
        """Draw who plays whom in the copies whose episode begins."""
        numbers = sorted(self._snapshots)
        for copy in np.flatnonzero(first):
            self.seats[copy] = self._generator.integers(len(self._member.agents))
            mirrors = not numbers or self._generator.random() < self._latest_share
            self.opponents[copy] = MIRROR if mirrors else numbers[self._generator.integers(len(numbers))]
        for number in [number for number in self._frozen if not (self.opponents == number).any()]:
            del self._frozen[number]

    def act(self, observation: Columns) -> Columns:
        """Actions and extra columns of all agents, [N, ...], under the environment's names."""
        agents, member = self._member.agents, self._member
        tell_of_episodes(member, observation)
        seen = observed_by(agents, observation)
        columns = {**by_agent(agents, member.policy.act(seen)), **self._learns()}
        for number in np.unique(self.opponents[self.opponents != MIRROR]).tolist():
            frozen = self._of(number)
            tell_of_episodes(frozen, observation)
            answer = by_agent(agents, frozen.policy.act(seen))
            for agent in agents:
                played = (self.opponents == number) & (self.seats != agent.index)
                self._replace(agent, columns, answer, played)
        return columns

    def extras(self, observation: Columns) -> Columns:
        """The extra columns of observations that follow the last `act`, where nothing is done."""
        agents = self._member.agents
        return {**by_agent(agents, self._member.policy.extras(observed_by(agents, observation))), **self._learns()}

    def greedy(self, observation: Columns) -> Columns:
        """The most probable actions of all agents [N], all by the policy that learns."""
        tell_of_episodes(self._member, observation)
        return by_agent(self._member.agents, self._member.policy.greedy(observed_by(self._member.agents, observation)))

    def values(self, observation: Columns, *, policy: str = "") -> npt.NDArray[np.float32]:
        """Values [N * agents] by the policy that learns."""
        return self._member.policy.values(observation)

    def _of(self, number: int) -> PolicyMember:
        """The snapshot `number`; made when it first plays, for it never changes."""
        if number not in self._frozen:
            policy = self._opponent()
            policy.load(WeightPart(version=max(number, 0), tensors=self._snapshots[number]))
            self._frozen[number] = PolicyMember(name=f"{self._member.name}/{number}", agents=self._member.agents, policy=policy)
        return self._frozen[number]

    def _learns(self) -> dict[str, Array]:
        mirror = self.opponents == MIRROR
        return {
            agent.joint(LEARNS.name): np.where(mirror, 2, self.seats == agent.index).astype(np.uint8)
            for agent in self._member.agents
        }

    def _replace(self, agent: AgentSpaces, columns: dict[str, Array], answer: Columns, played: npt.NDArray[np.bool_]) -> None:
        for leaf in agent.actions:
            name = agent.joint(leaf.name)
            columns[name] = np.where(played.reshape(-1, *[1] * (columns[name].ndim - 1)), answer[name], columns[name])
