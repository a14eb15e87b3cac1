"""The policy gradient with a value function: advantage actor-critic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.losses.columns import WEIGHT, coefficient
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.policies import Evaluates
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["PolicyGradientLoss"]


@dataclass(frozen=True)
class PolicyGradientLoss:
    """Mnih et al. 2016 (arXiv 1602.01783), section 4, A3C's gradient for rows that all come from the current policy (A2C):

        minimize  mean of  - log pi(a|s) A  + c1 (V(s) - R)²  - c2 S

    Advantages A (of GAE, n-step returns less values, or plain returns) and returns R come ready from outside. Means are
    weighted by `weight`.
    """

    policy: Evaluates

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("policy_loss", "value_loss", "entropy")

    def __post_init__(self) -> None:
        if not self.policy.value:
            raise ConfigError("PolicyGradientLoss.loss needs the policy's value head; build it with value=True")

    def arguments(self, api: str) -> Arguments:
        return {
            "observation": columns_of(self.policy.observation),
            "action": self.policy.action_columns,
            "advantage": Input(name="advantage"),
            "return_": Input(name="return"),
            "weight": WEIGHT,
            "value_coefficient": coefficient("value_coefficient"),
            "entropy_coefficient": coefficient("entropy_coefficient", high=0.1),
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
        """Shapes: all columns [B] (observations and actions [B, ...])."""
        ops = scope.ops
        share = weight / ops.sum(weight)
        now = self.policy.evaluate(scope, observation=observation, action=action)
        gain = now.log_prob * advantage
        error = now.value - return_
        squared = error * error
        loss = ops.dot(value_coefficient * squared - gain - entropy_coefficient * now.entropy, share)
        rows = ops.stop_gradient(ops.stack([-gain, squared, now.entropy]))
        return LossResult(loss=loss, metrics=ops.dot(rows, share), rows={})
