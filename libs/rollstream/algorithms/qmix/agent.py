"""What is optimized in QMIX: the joint value of all agents' actions, by the double-Q loss with importance weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.algorithms.qmix.config import QmixConfig
from rollstream.algorithms.schedule import linear
from rollstream.algorithms.tables import replay_table
from rollstream.algorithms.updating import Updating
from rollstream.graph.losses.qmix import QmixLoss
from rollstream.graph.policies.qmix_policy import QmixPolicy
from rollstream.learning import Learned, LearningAgent, SampledItems
from rollstream.replay import Prioritized, TableSpec, importance_weights, n_step
from rollstream.spaces import Batch, Column, Columns, Leaf, RowSpec

__all__ = ["QmixAgent"]

PRIORITY_FLOOR = 1e-3
"""Added to every error, so that no item's probability falls to 0 (Schaul et al. 2016, section 3.3)."""


class QmixAgent:
    """QMIX for one environment with several agents, given by its leaves."""

    extra_columns: tuple[Column, ...] = ()
    table_names = ("replay",)

    def __init__(self, config: QmixConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = QmixPolicy(
            observation,
            actions,
            hidden=config.hidden,
            activation=config.activation,
            mixing_units=config.mixing_units,
            hyper_units=config.hyper_units,
        )

    @property
    def loss(self) -> QmixLoss:
        return QmixLoss(self.policy, huber_delta=self.config.huber_delta or math.inf)

    def tables(self, rows: RowSpec) -> Mapping[str, TableSpec]:
        config = self.config
        return {
            "replay": replay_table(
                config,
                rows,
                sampler=Prioritized(exponent=config.priority_exponent),
                batch_items=config.batch_items,
            )
        }

    def learning(self, *, seed: int) -> LearningAgent:
        return _QmixLearning(self, seed=seed)


class _QmixLearning(Updating):
    """The learning half: one update a batch of joint transitions."""

    def __init__(self, agent: QmixAgent, *, seed: int) -> None:
        self._config = agent.config
        super().__init__("qmix", agent.loss, agent.config, batch_rows=agent.config.batch_items, seed=seed)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        rate = self.rate(env_steps=env_steps)
        result = self.update.update(batch.columns, learning_rate=rate)
        priority = np.abs(result.outputs["td_error"]) + np.float32(PRIORITY_FLOOR)
        return Learned(updates=1, metrics={**result.metrics, "learning_rate": rate}, columns={"td_error": priority})

    def columns(self, sample: SampledItems, *, env_steps: int) -> Columns:
        config = self._config
        beta = linear(config.importance_exponent, 1.0, env_steps=env_steps, over_steps=config.importance_growth_steps)
        columns: dict[str, Any] = n_step(sample.rows, sample.lengths, discount=config.discount, lead=sample.lead)
        weight = importance_weights(sample.probability, sample.table_items, beta=beta, normalize="batch")
        return {**columns, "weight": weight}

    def tensors(self, *, env_steps: int) -> Mapping[str, npt.NDArray[np.float32]]:
        config = self._config
        epsilon = linear(config.epsilon_start, config.epsilon_end, env_steps=env_steps, over_steps=config.epsilon_decay_steps)
        return {**super().tensors(env_steps=env_steps), "scalar.epsilon": np.asarray([epsilon], np.float32)}
