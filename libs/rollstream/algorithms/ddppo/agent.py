"""What is optimized in DDPPO: PPO's loss, in every actor at once; the learner keeps what they tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.algorithms.actor_critic import actor_critic
from rollstream.algorithms.ddppo.config import DdppoConfig
from rollstream.algorithms.gradients import require_stateless
from rollstream.algorithms.on_policy import OnPolicyAgent
from rollstream.algorithms.optimizing import learning_rate, optimizer
from rollstream.algorithms.updating import Updating
from rollstream.errors import SchemaMismatch
from rollstream.graph import PpoLoss, Update, build_update
from rollstream.graph.modes.update import Gradient
from rollstream.learning import Learned, LearningAgent
from rollstream.spaces import Batch, Columns, Leaf

__all__ = ["DdppoAgent", "DdppoTraining"]


class DdppoAgent(OnPolicyAgent):
    """DDPPO for one environment, given by its leaves."""

    def __init__(self, config: DdppoConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = actor_critic(config, observation=observation, actions=actions)
        require_stateless(self.policy, algorithm="ddppo")

    @property
    def loss(self) -> PpoLoss:
        return PpoLoss(self.policy)

    def training(self) -> DdppoTraining:
        """What actors learn with."""
        return DdppoTraining(self.loss, self.config)

    def learning(self, *, seed: int) -> LearningAgent:
        return _DdppoLearning(self, seed=seed)


class DdppoTraining:
    """Parameters and optimizer in one actor; see `rollstream.flow.steps.train_with_peers.LocalTraining`."""

    def __init__(self, loss: PpoLoss, config: DdppoConfig) -> None:
        self._loss = loss
        self._config = config
        self._update = self._built(1)
        self._rows = 1

    @property
    def updates(self) -> int:
        return self._update.updates

    def start(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        layout = self._update.layout
        self._update.load_parameters(layout.join({name: tensors[name] for name in layout.names}))

    def gradient(self, columns: Columns) -> Gradient:
        config, rows = self._config, len(next(iter(columns.values())))
        if rows > self._rows:
            larger = self._built(rows)
            larger.load_state(self._update.state())
            self._update, self._rows = larger, rows
        return self._update.gradient(
            columns,
            clip_ratio=config.clip_ratio,
            value_coefficient=config.value_coefficient,
            entropy_coefficient=config.entropy_coefficient,
        )

    def apply(self, vector: npt.NDArray[np.float32], *, env_steps: int) -> Mapping[str, float]:
        return self._update.apply(vector, learning_rate=learning_rate(self._config, env_steps=env_steps))

    def pack(self) -> npt.NDArray[np.float64]:
        return np.concatenate([array.reshape(-1).astype(np.float64) for array in self._update.state().values()])

    def unpack(self, packed: npt.NDArray[np.float64]) -> None:
        state, start = self._update.state(), 0
        for name, array in state.items():
            state[name] = packed[start : start + array.size].reshape(array.shape).astype(array.dtype)
            start += array.size
        self._update.load_state(state)

    def parameters(self) -> npt.NDArray[np.float32]:
        return self._update.parameters()

    def tensors(self) -> Mapping[str, npt.NDArray[np.float32]]:
        return self._update.tensors()

    def _built(self, rows: int) -> Update:
        config = self._config
        return build_update(
            self._loss,
            batch_rows=rows,
            optimizer=optimizer(config.optimizer),
            groups=config.learning_rate_groups,
            max_grad_norm=config.max_gradient_norm,
            mode=config.mode,
            seed=0,
        )


class _DdppoLearning(Updating):
    """The learning half: it takes up the weights of the peers' rank 0."""

    def __init__(self, agent: DdppoAgent, *, seed: int) -> None:
        super().__init__("ddppo", agent.loss, agent.config, batch_rows=1, seed=seed)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        if "parameters" not in batch.columns:
            raise SchemaMismatch(
                f"ddppo learns from the column 'parameters', the batch has: {', '.join(batch.columns) or 'none'}; "
                "put train_with_peers(...) before the gather"
            )
        if not batch.rows:
            return Learned(updates=0, metrics={})
        self.update.load_parameters(np.asarray(batch.columns["parameters"][-1]))
        return Learned(
            updates=int(batch.metrics.get("peer_updates", 0)), metrics={"learning_rate": self.rate(env_steps=env_steps)}
        )
