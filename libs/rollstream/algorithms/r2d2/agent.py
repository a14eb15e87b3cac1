"""What is optimized in R2D2: action values of a policy that remembers, over sequences with burn-in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.acting import ActorPlace
from rollstream.algorithms.exploring import own_epsilons
from rollstream.algorithms.observing import preprocessing
from rollstream.algorithms.r2d2.config import R2d2Config
from rollstream.algorithms.r2d2.sequences import sequence_columns
from rollstream.algorithms.schedule import linear
from rollstream.algorithms.tables import replay_table
from rollstream.algorithms.updating import Updating
from rollstream.graph.losses import SequenceQLoss
from rollstream.graph.policies import RecurrentQPolicy
from rollstream.learning import Learned, LearningAgent, SampledItems
from rollstream.replay import Prioritized, TableSpec, importance_weights
from rollstream.spaces import Batch, Column, Columns, Leaf, RowSpec

__all__ = ["R2d2Agent"]


class R2d2Agent:
    """R2D2 for one environment, given by its leaves."""

    table_names = ("replay",)

    def __init__(self, config: R2d2Config, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = RecurrentQPolicy(
            observation,
            actions,
            hidden=config.hidden,
            activation=config.activation,
            convolutions=config.convolutions,
            channels=config.channels,
            preprocessing=preprocessing(
                observation, config.preprocessing, channels=config.channels, normalize=config.normalize_observations
            ),
            recurrent=config.recurrent,
            recurrent_units=config.recurrent_units,
            dueling=config.dueling,
        )

    @property
    def loss(self) -> SequenceQLoss:
        config = self.config
        return SequenceQLoss(
            self.policy,
            steps=config.sequence_steps,
            burn_in=config.burn_in_steps,
            rescale=config.rescale_values,
            eta=config.priority_eta,
            huber_delta=config.huber_delta or math.inf,
        )

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        return self.policy.extra_columns

    def own_settings(self, scalars: Mapping[str, float], *, place: ActorPlace, envs: int) -> Mapping[str, Any]:
        """The epsilon of each environment of one actor. Shapes: -> [envs]."""
        return own_epsilons(self.config, scalars, place=place, envs=envs)

    def tables(self, rows: RowSpec) -> Mapping[str, TableSpec]:
        config = self.config
        return {
            "replay": replay_table(
                config,
                rows,
                sampler=Prioritized(exponent=config.priority_exponent),
                batch_items=config.batch_items,
                chunk_rows=config.stride_steps,
            )
        }

    def learning(self, *, seed: int) -> LearningAgent:
        return _R2d2Learning(self, seed=seed)


class _R2d2Learning(Updating):
    """The learning half: one update a batch of sequences."""

    def __init__(self, agent: R2d2Agent, *, seed: int) -> None:
        self._agent, self._config = agent, agent.config
        self._observation = [leaf.name for leaf in agent.policy.observation]
        super().__init__("r2d2", agent.loss, agent.config, batch_rows=agent.config.batch_items, seed=seed)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        rate = self.rate(env_steps=env_steps)
        result = self.update.update(batch.columns, learning_rate=rate)
        self.update.observe(self._steps(batch.columns))
        priority = result.outputs["td_error"] + np.float32(self._config.priority_floor)
        return Learned(updates=1, metrics={**result.metrics, "learning_rate": rate}, columns={"td_error": priority})

    def columns(self, sample: SampledItems, *, env_steps: int) -> Columns:
        config = self._config
        beta = linear(config.importance_exponent, 1.0, env_steps=env_steps, over_steps=config.importance_growth_steps)
        columns = sequence_columns(
            sample,
            observation=self._observation,
            action=[leaf.name for leaf in self._agent.actions],
            burn_in=config.burn_in_steps,
            steps=config.sequence_steps,
            n_step=config.n_step,
            discount=config.discount,
        )
        weight = importance_weights(sample.probability, sample.table_items, beta=beta, normalize="batch")
        return {**columns, "weight": weight}

    def tensors(self, *, env_steps: int) -> Mapping[str, npt.NDArray[np.float32]]:
        return {**super().tensors(env_steps=env_steps), "scalar.epsilon": np.asarray([self._config.epsilon], np.float32)}

    def _steps(self, columns: Columns) -> Columns:
        """Each step that is learned from as a row of its own, for statistics of observations."""
        config = self._config
        core = slice(config.burn_in_steps, config.burn_in_steps + config.sequence_steps)
        found = {name: columns[name][:, core] for name in self._observation}
        flat = {name: column.reshape(-1, *column.shape[2:]) for name, column in found.items()}
        return {**flat, "weight": (columns["valid"] * columns["weight"][:, None]).reshape(-1)}
