"""What is optimized in TD3, and in DDPG: a deterministic actor that climbs the values of its critics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from rollstream.algorithms.observing import preprocessing
from rollstream.algorithms.polyak import PolyakUpdating, recordings
from rollstream.algorithms.schedule import linear
from rollstream.algorithms.tables import replay_table
from rollstream.algorithms.td3.config import Td3Config
from rollstream.graph import DeterministicActorCritic
from rollstream.graph.losses import TwinDelayedLoss
from rollstream.learning import Learned, LearningAgent
from rollstream.replay import TableSpec
from rollstream.spaces import Batch, Column, Leaf, RowSpec

__all__ = ["Td3Agent"]


class Td3Agent:
    """TD3 for one environment, given by its leaves: actions are Boxes with bounds."""

    extra_columns: tuple[Column, ...] = ()
    table_names = ("replay",)

    def __init__(self, config: Td3Config, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.recordings = recordings(config)
        self.policy = DeterministicActorCritic(
            observation,
            actions,
            hidden=config.hidden,
            activation=config.activation,
            convolutions=config.convolutions,
            channels=config.channels,
            preprocessing=preprocessing(
                observation, config.preprocessing, channels=config.channels, normalize=config.normalize_observations
            ),
        )

    @property
    def loss(self) -> TwinDelayedLoss:
        config = self.config
        return TwinDelayedLoss(
            self.policy, twin=config.twin, target_noise=config.target_noise, target_noise_limit=config.target_noise_limit
        )

    def tables(self, rows: RowSpec) -> Mapping[str, TableSpec]:
        return {"replay": replay_table(self.config, rows, batch_items=self.config.batch_items)}

    def learning(self, *, seed: int) -> LearningAgent:
        return _Td3Learning(self, seed=seed)


class _Td3Learning(PolyakUpdating):
    """The learning half: one update a batch of items; of the actor too in one of `policy_delay_updates`."""

    def __init__(self, agent: Td3Agent, *, seed: int) -> None:
        self._config = agent.config
        super().__init__("td3", agent.loss, agent.config, seed=seed)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        rate = self.rate(env_steps=env_steps)
        moves_actor = (self.update.updates + 1) % self._config.policy_delay_updates == 0
        result = self.update.update(self.with_noise(batch.columns), learning_rate=rate, actor_weight=float(moves_actor))
        self.update.observe(batch.columns)
        return Learned(updates=1, metrics={**result.metrics, "learning_rate": rate})

    def tensors(self, *, env_steps: int) -> Mapping[str, npt.NDArray[np.float32]]:
        config = self._config
        scale = linear(
            config.exploration_noise_start,
            config.exploration_noise_end,
            env_steps=env_steps,
            over_steps=config.exploration_decay_steps,
        )
        return {**super().tensors(env_steps=env_steps), "scalar.noise_scale": np.asarray([scale], np.float32)}
