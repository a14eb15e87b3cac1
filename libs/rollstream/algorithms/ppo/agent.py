"""What is optimized in PPO: a policy over any action space with a value head, by the clipped surrogate loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollstream.algorithms.actor_critic import actor_critic
from rollstream.algorithms.on_policy import OnPolicyAgent
from rollstream.algorithms.ppo.config import PpoConfig
from rollstream.algorithms.sequences import sequences
from rollstream.algorithms.updating import Updating
from rollstream.graph import PpoLoss
from rollstream.learning import Learned, LearningAgent
from rollstream.seeding import child_generator
from rollstream.spaces import Batch, Leaf

__all__ = ["PpoAgent"]


class PpoAgent(OnPolicyAgent):
    """PPO for one environment, given by its leaves."""

    def __init__(self, config: PpoConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = actor_critic(
            config, observation=observation, actions=actions, recurrent=config.recurrent, recurrent_units=config.recurrent_units
        )

    @property
    def loss(self) -> PpoLoss:
        return PpoLoss(self.policy, steps=self.config.sequence_steps if self.config.recurrent else None)

    def learning(self, *, seed: int) -> LearningAgent:
        return _PpoLearning(self, seed=seed)


class _PpoLearning(Updating):
    """The learning half: epochs of shuffled minibatches over each round of data."""

    def __init__(self, agent: PpoAgent, *, seed: int) -> None:
        config = agent.config
        self._config = config
        self._batch_rows = config.batch_rows // config.sequence_steps if config.recurrent else config.batch_rows
        self._generator = child_generator(seed, "ppo", "minibatches")
        super().__init__("ppo", agent.loss, config, batch_rows=self._batch_rows, seed=seed, accumulate=config.accumulate_parts)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        config = self._config
        columns = sequences(batch.columns, steps=config.sequence_steps) if config.recurrent else batch.columns
        rate = self.rate(env_steps=env_steps)
        metrics = self.update.update_many(
            columns,
            epochs=config.epochs,
            generator=self._generator,
            learning_rate=rate,
            clip_ratio=config.clip_ratio,
            value_coefficient=config.value_coefficient,
            entropy_coefficient=config.entropy_coefficient,
        )
        self.update.observe(batch.columns)  # afterwards: actions are judged by the statistics with which they were chosen
        rows = len(next(iter(columns.values())))
        updates = config.epochs * -(-rows // self._batch_rows)
        return Learned(updates=updates, metrics={**metrics, "learning_rate": rate})

    def state(self) -> dict[str, Any]:
        return {**super().state(), "minibatches": self._generator.bit_generator.state}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._generator.bit_generator.state = state["minibatches"]
