"""What is optimized in A2C: a policy over any action space with a value head, by the policy gradient with advantages."""

from __future__ import annotations

import numpy as np

from rollstream.algorithms.a2c.config import A2cConfig
from rollstream.algorithms.actor_critic import actor_critic
from rollstream.algorithms.on_policy import OnPolicyAgent
from rollstream.algorithms.updating import Updating
from rollstream.graph.losses import PolicyGradientLoss
from rollstream.learning import Learned, LearningAgent
from rollstream.spaces import Batch, Leaf

__all__ = ["A2cAgent"]


class A2cAgent(OnPolicyAgent):
    """A2C for one environment, given by its leaves."""

    def __init__(self, config: A2cConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = actor_critic(config, observation=observation, actions=actions)

    @property
    def loss(self) -> PolicyGradientLoss:
        return PolicyGradientLoss(self.policy)

    def learning(self, *, seed: int) -> LearningAgent:
        return _A2cLearning(self, seed=seed)


class _A2cLearning(Updating):
    """The learning half: one update a round, whatever number of rows it has."""

    def __init__(self, agent: A2cAgent, *, seed: int) -> None:
        self._config = config = agent.config
        mode = config.mode if config.mode != "auto" else "torch" if config.convolutions else "numpy"
        settings = config.model_copy(update={"mode": mode})
        super().__init__("a2c", agent.loss, settings, batch_rows=config.microbatch_rows, seed=seed)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        config, rate = self._config, self.rate(env_steps=env_steps)
        parts = [
            self.update.gradient(
                {name: column[start : start + config.microbatch_rows] for name, column in batch.columns.items()},
                value_coefficient=config.value_coefficient,
                entropy_coefficient=config.entropy_coefficient,
            )
            for start in range(0, batch.rows, config.microbatch_rows)
        ]
        shares = [part.rows / batch.rows for part in parts]
        gradient = np.stack([share * part.vector for share, part in zip(shares, parts, strict=True)]).sum(
            axis=0, dtype=np.float32
        )
        told = {
            name: sum(share * part.metrics[name] for share, part in zip(shares, parts, strict=True)) for name in parts[0].metrics
        }
        applied = self.update.apply(gradient, learning_rate=rate)
        self.update.observe(batch.columns)  # afterwards: actions are judged by the statistics with which they were chosen
        return Learned(updates=1, metrics={**told, **applied, "learning_rate": rate})
