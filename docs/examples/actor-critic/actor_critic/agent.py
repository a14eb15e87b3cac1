"""What is optimized: a policy with a value head, by the policy gradient with a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actor_critic.config import ActorCriticConfig
from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy, Adam, build_update
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.losses import LossResult
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.learning import Learned, LearningAgent
from rollstream.seeding import child_generator, child_seed
from rollstream.spaces import Batch, Column, Columns, Leaf, RowSpec

__all__ = ["ActorCriticAgent", "ActorCriticLoss"]


@dataclass(frozen=True)
class ActorCriticLoss:
    """mean(-log pi(a|s) A + c1 (V(s) - R)² - c2 entropy), weighted by `weight`."""

    policy: ActorCriticPolicy

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("policy_loss", "value_loss", "entropy")

    def arguments(self, api: str) -> Arguments:
        return {
            "observation": columns_of(self.policy.observation),
            "action": self.policy.action_columns,
            "advantage": Input(name="advantage"),
            "return_": Input(name="return"),
            "weight": Input(name="weight", low=0.5, high=1.0),
            "value_coefficient": Input(name="value_coefficient", role="scalar", per_row=False),
            "entropy_coefficient": Input(name="entropy_coefficient", role="scalar", per_row=False),
        }

    @api
    def loss(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        action: Mapping[str, Array],
        advantage: Array,
        return_: Array,
        weight: Array,
        value_coefficient: Array | float,
        entropy_coefficient: Array | float,
    ) -> LossResult:
        """Shapes: all columns [B] (observations [B, ...])."""
        ops, still = scope.ops, scope.ops.stop_gradient
        share = weight / ops.sum(weight)
        now = self.policy.evaluate(scope, observation=observation, action=action)
        gain = now.log_prob * advantage
        squared_error = (now.value - return_) * (now.value - return_)
        loss = ops.dot(value_coefficient * squared_error - gain - entropy_coefficient * now.entropy, share)
        rows = [-still(gain), still(squared_error), still(now.entropy)]
        return LossResult(loss=loss, metrics=ops.dot(ops.stack(rows), share), rows={})


class ActorCriticAgent:
    """Advantage actor-critic for one environment, given by its leaves. Made in actors and in the learner."""

    table_names: tuple[str, ...] = ()

    def __init__(self, config: ActorCriticConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = ActorCriticPolicy(observation, actions, hidden=config.hidden)

    @property
    def loss(self) -> ActorCriticLoss:
        return ActorCriticLoss(self.policy)

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        return self.policy.extra_columns

    def tables(self, rows: RowSpec) -> Mapping[str, Any]:
        return {}

    def learning(self, *, seed: int) -> LearningAgent:
        return _Learning(self, seed=seed)


class _Learning:
    """The learning half: each row is used once."""

    def __init__(self, agent: ActorCriticAgent, *, seed: int) -> None:
        self._config = agent.config
        self._generator = child_generator(seed, "actor-critic", "rows")
        self._update = build_update(
            agent.loss,
            batch_rows=agent.config.batch_rows,
            optimizer=Adam(epsilon=1e-5),
            max_grad_norm=agent.config.max_gradient_norm,
            seed=child_seed(seed, "actor-critic", "parameters"),
        )

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        config, before = self._config, self._update.updates
        metrics = self._update.update_many(
            batch.columns,
            epochs=1,
            generator=self._generator,
            learning_rate=config.learning_rate,
            value_coefficient=config.value_coefficient,
            entropy_coefficient=config.entropy_coefficient,
        )
        return Learned(updates=self._update.updates - before, metrics=metrics)

    def columns(self, sample: Any, *, env_steps: int) -> Columns:
        raise ConfigError("actor-critic learns from rollouts, not from replay tables")

    def tensors(self, *, env_steps: int) -> Mapping[str, npt.NDArray[np.float32]]:
        return self._update.tensors()

    def sync_target(self) -> None:
        self._update.sync_target()

    def state(self) -> dict[str, Any]:
        return {"update": self._update.state(), "rows": self._generator.bit_generator.state}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._update.load_state(state["update"])
        self._generator.bit_generator.state = state["rows"]
