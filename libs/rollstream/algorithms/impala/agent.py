"""What is optimized in IMPALA: a policy over any action space with a value head, by the V-trace actor-critic loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollstream.algorithms.actor_critic import actor_critic
from rollstream.algorithms.impala.config import ImpalaConfig, VtraceSettings
from rollstream.algorithms.on_policy import OnPolicyAgent
from rollstream.algorithms.unrolls import unrolls
from rollstream.algorithms.updating import Updating
from rollstream.graph import ActorCriticPolicy, Loss
from rollstream.graph.losses import VtraceLoss
from rollstream.learning import Learned, LearningAgent
from rollstream.seeding import child_generator
from rollstream.spaces import Batch, Leaf

__all__ = ["ImpalaAgent", "VtraceLearning", "vtrace_policy"]


class ImpalaAgent(OnPolicyAgent):
    """IMPALA for one environment, given by its leaves."""

    def __init__(self, config: ImpalaConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = vtrace_policy(config, observation=observation, actions=actions)

    @property
    def loss(self) -> VtraceLoss:
        config = self.config
        return VtraceLoss(
            self.policy,
            steps=config.sequence_steps,
            lambda_=config.vtrace_lambda,
            rho_clip=config.rho_clip,
            c_clip=config.c_clip,
            advantage_rho_clip=config.rho_clip,
        )

    def learning(self, *, seed: int) -> LearningAgent:
        config = self.config
        scalars = {"value_coefficient": config.value_coefficient, "entropy_coefficient": config.entropy_coefficient}
        return VtraceLearning("impala", self.loss, config, scalars=scalars, epochs=1, seed=seed)


class VtraceLearning(Updating):
    """The learning half: sequences of a batch, shuffled, in updates of equal size.

    Args:
        scalars: the loss's settings.
        epochs: passes over each batch.
    """

    def __init__(
        self, name: str, loss: Loss, settings: VtraceSettings, *, scalars: Mapping[str, float], epochs: int, seed: int
    ) -> None:
        self._sequence_steps = settings.sequence_steps
        self._batch_sequences = settings.batch_sequences
        self._scalars: dict[str, Any] = dict(scalars)
        self._epochs = epochs
        self._generator = child_generator(seed, name, "minibatches")
        super().__init__(name, loss, settings, batch_rows=settings.batch_sequences, seed=seed)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        columns = unrolls(batch.columns, steps=self._sequence_steps)
        rate = self.rate(env_steps=env_steps)
        metrics = self.update.update_many(
            columns, epochs=self._epochs, generator=self._generator, learning_rate=rate, **self._scalars
        )
        if batch.env_steps:  # what is learned from again has been seen
            self.update.observe(batch.columns)
        updates = self._epochs * -(-len(columns["weight"]) // self._batch_sequences)
        return Learned(updates=updates, metrics={**metrics, "learning_rate": rate})

    def state(self) -> dict[str, Any]:
        return {**super().state(), "minibatches": self._generator.bit_generator.state}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._generator.bit_generator.state = state["minibatches"]


def vtrace_policy(config: VtraceSettings, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> ActorCriticPolicy:
    """The policy that these settings describe."""
    return actor_critic(
        config, observation=observation, actions=actions, recurrent=config.recurrent, recurrent_units=config.recurrent_units
    )
