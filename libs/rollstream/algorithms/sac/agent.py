"""What is optimized in SAC: a stochastic actor, twin critics and a temperature, for Box or for one Discrete action."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rollstream.algorithms.observing import preprocessing
from rollstream.algorithms.polyak import PolyakUpdating, recordings
from rollstream.algorithms.sac.config import SacConfig
from rollstream.algorithms.tables import replay_table
from rollstream.graph import Loss
from rollstream.graph.discrete import choices
from rollstream.graph.losses import DiscreteSoftActorCriticLoss, SoftActorCriticLoss
from rollstream.graph.policies import DiscreteSoftActorCritic, SoftActorCritic
from rollstream.learning import Learned, LearningAgent
from rollstream.replay import TableSpec
from rollstream.spaces import Batch, Column, Leaf, RowSpec

__all__ = ["SacAgent"]


class SacAgent:
    """SAC for one environment, given by its leaves: Boxes with bounds, or one Discrete action."""

    extra_columns: tuple[Column, ...] = ()
    table_names = ("replay",)

    def __init__(self, config: SacConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.recordings = recordings(config)
        made = DiscreteSoftActorCritic if all(leaf.kind == "discrete" for leaf in actions) else SoftActorCritic
        self.policy: DiscreteSoftActorCritic | SoftActorCritic = made(
            observation,
            actions,
            hidden=config.hidden,
            activation=config.activation,
            convolutions=config.convolutions,
            channels=config.channels,
            preprocessing=preprocessing(
                observation, config.preprocessing, channels=config.channels, normalize=config.normalize_observations
            ),
            initial_temperature=config.initial_temperature,
        )

    @property
    def loss(self) -> Loss:
        config, policy = self.config, self.policy
        if isinstance(policy, DiscreteSoftActorCritic):
            usual = config.target_entropy_share * math.log(choices(policy.action))
            target = usual if config.target_entropy is None else config.target_entropy
            return DiscreteSoftActorCriticLoss(policy, target_entropy=target, learn_temperature=config.learn_temperature)
        target = -float(policy.action_size) if config.target_entropy is None else config.target_entropy
        return SoftActorCriticLoss(policy, target_entropy=target, learn_temperature=config.learn_temperature)

    def tables(self, rows: RowSpec) -> Mapping[str, TableSpec]:
        return {"replay": replay_table(self.config, rows, batch_items=self.config.batch_items)}

    def learning(self, *, seed: int) -> LearningAgent:
        return _SacLearning("sac", self.loss, self.config, seed=seed)


class _SacLearning(PolyakUpdating):
    """The learning half: one update a batch of items moves actor, critics and temperature."""

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        rate = self.rate(env_steps=env_steps)
        result = self.update.update(self.with_noise(batch.columns), learning_rate=rate)
        self.update.observe(batch.columns)
        return Learned(updates=1, metrics={**result.metrics, "learning_rate": rate})
