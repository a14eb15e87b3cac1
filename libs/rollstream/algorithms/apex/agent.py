"""What is optimized in Ape-X: the action values of DQN; and how its actors differ from one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollstream.acting import ActorPlace
from rollstream.algorithms.dqn.agent import DqnAgent
from rollstream.algorithms.exploring import own_epsilons

__all__ = ["ApexAgent"]


class ApexAgent(DqnAgent):
    """Ape-X for one environment, given by its leaves: DQN whose rows hold the values that actors acted by."""

    tells_values = True

    def epsilon(self, *, env_steps: int) -> float:
        """Share of random actions of the environment that explores most; it stays."""
        config: Any = self.config
        return float(config.epsilon)

    def own_settings(self, scalars: Mapping[str, float], *, place: ActorPlace, envs: int) -> Mapping[str, Any]:
        """The epsilon of each environment of one actor. Shapes: -> [envs]."""
        config: Any = self.config
        return own_epsilons(config, scalars, place=place, envs=envs)
