"""What is optimized in behavior cloning: the likelihood of the recorded actions."""

from __future__ import annotations

from collections.abc import Mapping

from rollstream.algorithms.bc.config import BcConfig
from rollstream.algorithms.imitating import Imitating, imitation_policy, offline_table
from rollstream.algorithms.recordings import Recording
from rollstream.graph.losses import BehaviorCloningLoss
from rollstream.learning import Learned, LearningAgent
from rollstream.replay import TableSpec
from rollstream.spaces import Batch, Column, Leaf, RowSpec

__all__ = ["BcAgent"]


class BcAgent:
    """Behavior cloning for one environment, given by its leaves."""

    extra_columns: tuple[Column, ...] = ()
    table_names = ("replay",)

    def __init__(self, config: BcConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = imitation_policy(config, observation=observation, actions=actions, value=False)
        self.recordings = {"replay": Recording(source=config.offline)}

    @property
    def loss(self) -> BehaviorCloningLoss:
        return BehaviorCloningLoss(self.policy)

    def tables(self, rows: RowSpec) -> Mapping[str, TableSpec]:
        return {"replay": offline_table(self.config, rows)}

    def learning(self, *, seed: int) -> LearningAgent:
        return _BcLearning("bc", self.loss, self.config, actions=self.actions, seed=seed)


class _BcLearning(Imitating):
    """The learning half: one update a batch of recorded actions."""

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        rate = self.rate(env_steps=env_steps)
        result = self.update.update(batch.columns, learning_rate=rate)
        self.update.observe(batch.columns)
        return Learned(updates=1, metrics={**result.metrics, "learning_rate": rate})
