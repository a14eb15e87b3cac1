"""What is optimized in DQN: action values, by the double-Q n-step loss with importance weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.algorithms.dqn.config import ActionValueSettings
from rollstream.algorithms.observing import preprocessing
from rollstream.algorithms.schedule import linear
from rollstream.algorithms.tables import replay_table
from rollstream.algorithms.updating import Updating
from rollstream.graph import DoubleQLoss, Loss, QPolicy
from rollstream.graph.losses import CategoricalQLoss, QuantileQLoss
from rollstream.graph.losses.noisy import CHOICE, ONLINE, TARGET
from rollstream.learning import Learned, LearningAgent, SampledItems
from rollstream.replay import Prioritized, TableSpec, importance_weights, n_step
from rollstream.seeding import child_generator
from rollstream.spaces import Batch, Column, Columns, Leaf, RowSpec

__all__ = ["DqnAgent"]


class DqnAgent:
    """DQN for one environment, given by its leaves."""

    table_names = ("replay",)
    tells_values = False
    """Whether rows hold the values that actors acted by."""

    def __init__(self, config: ActionValueSettings, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = QPolicy(
            observation,
            actions,
            hidden=config.hidden,
            activation=config.activation,
            convolutions=config.convolutions,
            channels=config.channels,
            preprocessing=preprocessing(
                observation, config.preprocessing, channels=config.channels, normalize=config.normalize_observations
            ),
            dueling=config.dueling,
            distribution=config.distribution,
            atoms=config.distribution_atoms,
            low=config.distribution_low,
            high=config.distribution_high,
            noisy=config.noisy,
            noise_deviation=config.noise_deviation,
            tells_values=self.tells_values,
        )

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        return self.policy.extra_columns

    @property
    def loss(self) -> Loss:
        policy, config = self.policy, self.config
        if config.distribution == "c51":
            return CategoricalQLoss(policy)
        if config.distribution == "quantile":
            return QuantileQLoss(policy, huber_delta=config.huber_delta or 1.0)  # quantiles are learned by absolute errors
        return DoubleQLoss(policy, huber_delta=config.huber_delta or math.inf)

    def tables(self, rows: RowSpec) -> Mapping[str, TableSpec]:
        config = self.config
        return {
            "replay": replay_table(
                config,
                rows,
                sampler=Prioritized(exponent=config.priority_exponent),
                batch_items=config.sample_items,
                chunk_rows=(config.n_step + 1) // 2,  # an item of n + 1 rows is read as 3 chunks, with few rows too many
            )
        }

    def epsilon(self, *, env_steps: int) -> float:
        """Share of random actions in actors."""
        config: Any = self.config
        return linear(config.epsilon_start, config.epsilon_end, env_steps=env_steps, over_steps=config.epsilon_decay_steps)

    def learning(self, *, seed: int) -> LearningAgent:
        return _DqnLearning(self, seed=seed)


class _DqnLearning(Updating):
    """The learning half: a sample is as many updates as it holds batches."""

    def __init__(self, agent: DqnAgent, *, seed: int) -> None:
        self._agent, self._config = agent, agent.config
        self._generator = child_generator(seed, "dqn", "noise")
        super().__init__("dqn", agent.loss, agent.config, batch_rows=agent.config.batch_items, seed=seed)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        rate = self.rate(env_steps=env_steps)
        result = self.update_each(batch.columns, rows=self._config.batch_items, learning_rate=rate, further=self._noise)
        self.update.observe(batch.columns)  # statistics are those of sampled rows, corrected by their importance weights
        priority = np.abs(result.outputs["td_error"]) + np.float32(self._config.priority_floor)
        metrics = {**result.metrics, "learning_rate": rate}
        return Learned(updates=len(priority) // self._config.batch_items, metrics=metrics, columns={"td_error": priority})

    def columns(self, sample: SampledItems, *, env_steps: int) -> Columns:
        config = self._config
        beta = linear(config.importance_exponent, 1.0, env_steps=env_steps, over_steps=config.importance_growth_steps)
        columns = n_step(sample.rows, sample.lengths, discount=config.discount, lead=sample.lead)
        batches = sample.probability.reshape(-1, config.batch_items)
        weights = [importance_weights(batch, sample.table_items, beta=beta, normalize="batch") for batch in batches]
        return {**columns, "weight": np.concatenate(weights)}

    def tensors(self, *, env_steps: int) -> Mapping[str, npt.NDArray[np.float32]]:
        epsilon = np.asarray([self._agent.epsilon(env_steps=env_steps)], np.float32)
        return {**super().tensors(env_steps=env_steps), "scalar.epsilon": epsilon}

    def state(self) -> dict[str, Any]:
        return {**super().state(), "noise": self._generator.bit_generator.state}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        if "noise" in state:  # the last release saved none
            self._generator.bit_generator.state = state["noise"]

    def _noise(self) -> Columns:
        """Noise of the weights for each network that the loss evaluates, [B, W]; nothing without noisy layers."""
        rows = self._config.batch_items
        return {
            name: self._generator.standard_normal((rows, *item.shape), np.float32)
            for item in self._agent.policy.noise
            for name in (ONLINE, CHOICE, TARGET)
        }
