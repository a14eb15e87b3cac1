"""What is optimized in MARWIL: the likelihood of recorded actions, each weighted by how much better than expected it went."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rollstream.algorithms.imitating import Imitating, imitation_policy, offline_table
from rollstream.algorithms.marwil.config import MarwilConfig
from rollstream.algorithms.recordings import RETURN, Recording
from rollstream.graph.losses import MarwilLoss
from rollstream.learning import Learned, LearningAgent
from rollstream.replay import TableSpec
from rollstream.spaces import Batch, Column, Leaf, RowSpec

__all__ = ["MarwilAgent"]


class MarwilAgent:
    """MARWIL for one environment, given by its leaves. Rows of its table also hold the discounted return."""

    extra_columns: tuple[Column, ...] = ()
    table_names = ("replay",)

    def __init__(self, config: MarwilConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = imitation_policy(config, observation=observation, actions=actions, value=True)
        self.recordings = {"replay": Recording(source=config.offline, discount=config.discount)}

    @property
    def loss(self) -> MarwilLoss:
        return MarwilLoss(self.policy, max_weight=self.config.imitation_weight_limit)

    def tables(self, rows: RowSpec) -> Mapping[str, TableSpec]:
        return {"replay": offline_table(self.config, rows, extra=(RETURN,))}

    def learning(self, *, seed: int) -> LearningAgent:
        return _MarwilLearning(self, seed=seed)


class _MarwilLearning(Imitating):
    """The learning half: one update a batch of recorded actions; it remembers the scale of advantages."""

    def __init__(self, agent: MarwilAgent, *, seed: int) -> None:
        self._config = agent.config
        self._squared_advantage: float | None = None
        super().__init__("marwil", agent.loss, agent.config, actions=agent.actions, seed=seed)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        config, rate, squared = self._config, self.rate(env_steps=env_steps), self._squared_advantage
        if squared is None:  # no advantage is known yet: values are near 0
            squared = float((batch.columns["return"] ** 2).mean())
        scale = max(math.sqrt(squared), 1e-8)
        result = self.update.update(
            batch.columns,
            learning_rate=rate,
            beta=config.imitation_exponent,
            advantage_scale=scale,
            value_coefficient=config.value_coefficient,
        )
        self.update.observe(batch.columns)
        found = result.metrics.get("squared_advantage", squared)
        self._squared_advantage = squared + config.advantage_scale_share * (found - squared)
        return Learned(updates=1, metrics={**result.metrics, "advantage_scale": scale, "learning_rate": rate})

    def state(self) -> dict[str, Any]:
        return {**super().state(), "squared_advantage": self._squared_advantage}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._squared_advantage = state.get("squared_advantage")
