"""What is optimized by the two trainers: PPO's loss for the agents of one policy, DQN's for those of the other."""

from __future__ import annotations

from rollstream.algorithms.agent import Agent
from rollstream.algorithms.dqn.agent import DqnAgent
from rollstream.algorithms.policies import PolicyAgents, parts
from rollstream.algorithms.ppo.agent import PpoAgent
from rollstream.algorithms.two_trainer.config import TwoTrainerConfig
from rollstream.config import PolicySettings
from rollstream.spaces import AgentSpaces, Leaf, agents_of

__all__ = ["TwoTrainerAgent"]


class TwoTrainerAgent(PolicyAgents):
    """A PPO agent and a DQN agent for one environment with several agents, given by its leaves."""

    def __init__(self, config: TwoTrainerConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        names = [agent.name for agent in agents_of(observation, actions)]
        policies = config.policies or {"ppo": PolicySettings(agents=tuple(names[::2]) or ("*",)), "dqn": PolicySettings()}

        def make(name: str, agent: AgentSpaces) -> Agent:
            if name == "ppo":
                return PpoAgent(config.ppo, observation=agent.observation, actions=agent.actions)
            return DqnAgent(config.dqn, observation=agent.observation, actions=agent.actions)

        found = parts(policies, make, observation=observation, actions=actions)
        super().__init__(config, found, actions=actions)
