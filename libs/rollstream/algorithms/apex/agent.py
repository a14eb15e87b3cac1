"""What is optimized in Ape-X: the action values of DQN; and how its actors differ from one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rollstream.acting import ActorPlace
from rollstream.algorithms.dqn.agent import DqnAgent

__all__ = ["ApexAgent"]


class ApexAgent(DqnAgent):
    """Ape-X for one environment, given by its leaves: DQN whose rows hold the values that actors acted by."""

    tells_values = True

    def epsilon(self, *, env_steps: int) -> float:
        """Share of random actions of the environment that explores most; it stays."""
        config: Any = self.config
        return float(config.epsilon)

    def own_settings(self, scalars: Mapping[str, float], *, place: ActorPlace, envs: int) -> Mapping[str, Any]:
        """epsilon_i = epsilon^(1 + alpha i / (N - 1)) for environment i of the N in all actors (Horgan et al. 2018, section 4.1, where
        an actor has one environment). Shapes: -> [envs]."""
        config: Any = self.config
        first = min(place.ordinal, place.actors - 1) * envs
        share = (first + np.arange(envs)) / max(1, place.actors * envs - 1)
        return {**scalars, "epsilon": scalars["epsilon"] ** (1.0 + config.epsilon_exponent * share)}
