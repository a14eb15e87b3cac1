"""What is optimized in CQL: SAC for Box actions, double Q-learning for a Discrete one, and in both a term against wishful thinking."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rollstream.algorithms.cql.config import CqlConfig
from rollstream.algorithms.imitating import offline_table
from rollstream.algorithms.observing import preprocessing
from rollstream.algorithms.polyak import PolyakUpdating
from rollstream.algorithms.recordings import Recording
from rollstream.graph import DoubleQLoss, Loss, QPolicy, SoftActorCritic
from rollstream.graph.losses import ConservativeSoftLoss, SoftActorCriticLoss
from rollstream.learning import Learned, LearningAgent
from rollstream.replay import TableSpec
from rollstream.spaces import Batch, Column, Leaf, RowSpec

__all__ = ["CqlAgent"]


class CqlAgent:
    """CQL for one environment, given by its leaves: Boxes with bounds, or one Discrete action."""

    extra_columns: tuple[Column, ...] = ()
    table_names = ("replay",)

    def __init__(self, config: CqlConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.recordings = {"replay": Recording(source=config.offline, steps=config.n_step)}
        networks: dict[str, Any] = {
            "hidden": config.hidden,
            "activation": config.activation,
            "convolutions": config.convolutions,
            "channels": config.channels,
            "preprocessing": preprocessing(
                observation, config.preprocessing, channels=config.channels, normalize=config.normalize_observations
            ),
        }
        self.policy: QPolicy | SoftActorCritic
        if all(leaf.kind == "discrete" for leaf in actions):
            self.policy = QPolicy(observation, actions, **networks)
        else:
            self.policy = SoftActorCritic(observation, actions, initial_temperature=config.initial_temperature, **networks)

    @property
    def loss(self) -> Loss:
        config, policy = self.config, self.policy
        if isinstance(policy, QPolicy):
            return DoubleQLoss(policy, huber_delta=math.inf, conservative=config.conservative_weight)
        target = -float(policy.action_size) if config.target_entropy is None else config.target_entropy
        soft = SoftActorCriticLoss(policy, target_entropy=target, learn_temperature=config.learn_temperature)
        return ConservativeSoftLoss(soft, weight=config.conservative_weight, samples=config.conservative_samples)

    def tables(self, rows: RowSpec) -> Mapping[str, TableSpec]:
        return {"replay": offline_table(self.config, rows)}

    def learning(self, *, seed: int) -> LearningAgent:
        return _CqlLearning("cql", self.loss, self.config, seed=seed)


class _CqlLearning(PolyakUpdating):
    """The learning half: one update a batch of recorded transitions."""

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        rate = self.rate(env_steps=env_steps)
        result = self.update.update(self.with_noise(batch.columns), learning_rate=rate)
        self.update.observe(batch.columns)
        return Learned(updates=1, metrics={**result.metrics, "learning_rate": rate})
