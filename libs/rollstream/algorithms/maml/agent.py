"""What is optimized in MAML: a policy's weights, by the loss after a gradient step on a task that the loss is differentiated through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.algorithms.actor_critic import actor_critic
from rollstream.algorithms.gradients import ActorGradients, require_stateless
from rollstream.algorithms.maml.config import MamlConfig
from rollstream.algorithms.on_policy import OnPolicyAgent
from rollstream.algorithms.updating import Updating
from rollstream.errors import SchemaMismatch
from rollstream.flow.steps.adapt import PHASE, TASK
from rollstream.graph import PpoLoss, declare
from rollstream.graph.layout import FlatLayout
from rollstream.learning import Learned, LearningAgent
from rollstream.spaces import Batch, Columns, Leaf

__all__ = ["MamlAgent", "tasks_of"]

INNER = {"clip_ratio": 1e6, "value_coefficient": 0.0, "entropy_coefficient": 0.0}
"""Adaptation is the plain policy gradient: of the ratio, never cut, whose second derivatives are those of the expected return."""


class MamlAgent(OnPolicyAgent):
    """MAML for one family of tasks, given by the leaves of its environments."""

    def __init__(self, config: MamlConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = actor_critic(config, observation=observation, actions=actions)
        require_stateless(self.policy, algorithm="maml")

    @property
    def loss(self) -> PpoLoss:
        return PpoLoss(self.policy)

    def adaptation(self) -> _Adaptation:
        """The inner gradient step, for actors."""
        gradients = ActorGradients(self.loss, settings=INNER)
        return _Adaptation(gradients, declare(self.policy).layout, self.config.inner_learning_rate)

    def learning(self, *, seed: int) -> LearningAgent:
        return _MamlLearning(self, seed=seed)


@dataclass(frozen=True, slots=True)
class _Adaptation:
    """Implements `rollstream.flow.steps.adapt.Adaptation`."""

    gradients: ActorGradients
    layout: FlatLayout
    learning_rate: float

    def adapted(self, columns: Columns, tensors: Mapping[str, npt.NDArray[Any]]) -> Mapping[str, npt.NDArray[Any]]:
        slope = self.gradients.gradient(columns, tensors).vector
        flat = self.layout.join({name: tensors[name] for name in self.layout.names})
        return self.layout.split(flat - np.float32(self.learning_rate) * slope)


class _MamlLearning(Updating):
    """The learning half: several meta-updates on each round of tasks."""

    def __init__(self, agent: MamlAgent, *, seed: int) -> None:
        from rollstream.graph.backends.torch.meta_gradient import MetaGradient

        self._config = config = agent.config
        super().__init__("maml", agent.loss, config.model_copy(update={"mode": "numpy"}), batch_rows=1, seed=seed)
        outer = {
            "clip_ratio": config.clip_ratio,
            "value_coefficient": config.value_coefficient,
            "entropy_coefficient": config.entropy_coefficient,
        }
        self._meta = MetaGradient(
            agent.loss,
            inner=INNER,
            outer=outer,
            inner_learning_rate=config.inner_learning_rate,
            first_order=config.first_order,
        )

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        config, rate = self._config, self.rate(env_steps=env_steps)
        tasks = tasks_of(batch.columns, phases=config.inner_steps + 1)
        told: dict[str, float] = {}
        skipped = 0.0
        for _ in range(config.epochs):
            found = self._meta.gradient(self.update.parameters(), tasks)
            applied = self.update.apply(found.vector, learning_rate=rate)
            told = {**told, **found.metrics, **applied}
            skipped += applied["skipped_updates"]
        before, after = (np.mean([task[phase]["reward"].mean() for task in tasks]) for phase in (0, -1))
        rewards = {"reward_before": float(before), "reward_after": float(after)}
        told = {**told, **rewards, "skipped_updates": skipped, "updates": config.epochs - skipped, "learning_rate": rate}
        return Learned(updates=config.epochs, metrics=told)


def tasks_of(columns: Columns, *, phases: int) -> list[list[dict[str, npt.NDArray[Any]]]]:
    """Rows by task, and in each by phase, as the step `adapt` sent them one after the other.

    Raises:
        SchemaMismatch: a task does not have so many phases: actors and learner have different settings.
    """
    task, phase = columns[TASK], columns[PHASE]
    starts = np.flatnonzero(np.append(True, (task[1:] != task[:-1]) | (phase[1:] != phase[:-1])))
    parts = np.split(np.arange(len(task)), starts[1:])
    if phase[starts].tolist() != list(range(phases)) * (len(starts) // phases):
        raise SchemaMismatch(f"tasks have the phases {phase[starts].tolist()}, this learner differentiates through {phases} each")
    taken = [{name: column[part] for name, column in columns.items()} for part in parts]
    return [taken[start : start + phases] for start in range(0, len(taken), phases)]
