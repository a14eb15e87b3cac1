"""What is optimized in PPO for several agents: for each policy PPO's loss, over the rows of all the agents that it plays."""

from __future__ import annotations

from rollstream.algorithms.multi_ppo.config import MultiPpoConfig
from rollstream.algorithms.policies import PolicyAgents, parts
from rollstream.algorithms.ppo.agent import PpoAgent
from rollstream.spaces import AgentSpaces, Leaf

__all__ = ["MultiPpoAgent"]


class MultiPpoAgent(PolicyAgents):
    """PPO agents for one environment with several agents, given by its leaves."""

    def __init__(self, config: MultiPpoConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        def make(name: str, agent: AgentSpaces) -> PpoAgent:
            return PpoAgent(config, observation=agent.observation, actions=agent.actions)

        found = parts(config.policies, make, observation=observation, actions=actions)
        super().__init__(config, found, actions=actions)
