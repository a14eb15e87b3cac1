"""The loss of QMIX: double Q-learning of the joint value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, columns_of
from rollstream.graph.losses.columns import DISCOUNT, REWARD, WEIGHT
from rollstream.graph.losses.huber import huber
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.ops import Array
from rollstream.graph.policies.qmix_policy import QmixPolicy
from rollstream.graph.scope import Scope, api

__all__ = ["QmixLoss"]


@dataclass(frozen=True)
class QmixLoss:
    """Rashid et al. 2018 (arXiv 1803.11485), equations 6 and 7, with the actions chosen by the online network (double Q).

    td_error = reward + discount * Q_tot_target(s', each agent's argmax of Q(s', .)) - Q_tot(s, a);  loss = mean of weight * huber.

    Attributes:
        huber_delta: errors beyond it have a gradient of constant size.
    """

    policy: QmixPolicy
    _: KW_ONLY
    huber_delta: float = 1.0

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("td_error_abs", "q_value")

    def __post_init__(self) -> None:
        if not self.huber_delta > 0:
            raise ConfigError(f"huber_delta of QmixLoss must be > 0, got {self.huber_delta}; for squared errors use a large one")

    def arguments(self, api: str) -> Arguments:
        return {
            "observation": columns_of(self.policy.observation),
            "action": self.policy.action_columns,
            "reward": REWARD,
            "discount": DISCOUNT,
            "next_observation": columns_of(self.policy.observation, prefix="next_"),
            "weight": WEIGHT,
        }

    @api
    def loss(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        action: Mapping[str, Array],
        reward: Array,
        discount: Array,
        next_observation: Mapping[str, Array],
        weight: Array,
    ) -> LossResult:
        """Shapes: all columns [B] (observations [B, ...]). Rows afterwards: `td_error` [B], with its sign."""
        ops, policy = scope.ops, self.policy
        own = ops.pick(policy.agent_values(scope, observation=observation), policy.chosen(scope, action))
        joint_tm1 = policy.joint_value(scope, observation=observation, q=own)
        best = ops.argmax(policy.agent_values(scope.without_gradient(), observation=next_observation))
        target = scope.target()
        own_t = ops.pick(policy.agent_values(target, observation=next_observation), best)
        joint_t = policy.joint_value(target, observation=next_observation, q=own_t)
        td_error = ops.stop_gradient(reward + discount * joint_t) - joint_tm1
        share = weight * (1.0 / weight.shape[0])
        error = ops.stop_gradient(td_error)
        rows = ops.stack([ops.abs(error), ops.stop_gradient(joint_tm1)])
        return LossResult(
            loss=ops.dot(huber(ops, td_error, delta=self.huber_delta), share),
            metrics=ops.sum(rows, axis=-1) * (1.0 / weight.shape[0]),
            rows={"td_error": error},
        )
