"""What is optimized in A3C: a policy over any action space with a value head, by gradients that come ready from the actors."""

from __future__ import annotations

from rollstream.algorithms.a3c.config import A3cConfig
from rollstream.algorithms.actor_critic import actor_critic
from rollstream.algorithms.gradients import ActorGradients, require_stateless
from rollstream.algorithms.on_policy import OnPolicyAgent
from rollstream.algorithms.updating import Updating
from rollstream.graph.losses import PolicyGradientLoss
from rollstream.learning import Learned, LearningAgent
from rollstream.spaces import Batch, Leaf

__all__ = ["A3cAgent"]


class A3cAgent(OnPolicyAgent):
    """A3C for one environment, given by its leaves."""

    def __init__(self, config: A3cConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = actor_critic(config, observation=observation, actions=actions)
        require_stateless(self.policy, algorithm="a3c")

    @property
    def loss(self) -> PolicyGradientLoss:
        return PolicyGradientLoss(self.policy)

    def gradients(self) -> ActorGradients:
        """What actors compute with."""
        config = self.config
        coefficients = {"value_coefficient": config.value_coefficient, "entropy_coefficient": config.entropy_coefficient}
        return ActorGradients(self.loss, settings=coefficients)

    def learning(self, *, seed: int) -> LearningAgent:
        return _A3cLearning(self, seed=seed)


class _A3cLearning(Updating):
    """The learning half: one optimizer step for each gradient."""

    def __init__(self, agent: A3cAgent, *, seed: int) -> None:
        super().__init__("a3c", agent.loss, agent.config, batch_rows=1, seed=seed)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        rate = self.rate(env_steps=env_steps)
        told = [self.update.apply(gradient, learning_rate=rate) for gradient in batch.columns["gradient"]]
        skipped = sum(each["skipped_updates"] for each in told)
        metrics = {**told[-1], "skipped_updates": skipped, "learning_rate": rate}
        return Learned(updates=len(told) - int(skipped), metrics=metrics)
