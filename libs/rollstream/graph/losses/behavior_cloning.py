"""Behavior cloning: do as the rows did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.losses.columns import WEIGHT, coefficient
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.policies import Evaluates
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["BehaviorCloningLoss"]


@dataclass(frozen=True)
class BehaviorCloningLoss:
    """Negative log-likelihood of the actions, for any action space (Pomerleau 1991): minimize mean of - log pi(a|s) + c1 (V(s) - R)².

    Attributes:
        value: also learn the value of the policy that acted, from a column `return`.
    """

    policy: Evaluates
    _: KW_ONLY
    value: bool = False

    def __post_init__(self) -> None:
        if self.value and not self.policy.value:
            raise ConfigError("BehaviorCloningLoss.loss with value=True needs the policy's value head; build it with value=True")

    @property
    def apis(self) -> tuple[str, ...]:
        return ("loss",)

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("negative_log_likelihood", "entropy", *(("value_loss",) if self.value else ()))

    def arguments(self, api: str) -> Arguments:
        of_value = {"return_": Input(name="return"), "value_coefficient": coefficient("value_coefficient")}
        return {
            "observation": columns_of(self.policy.observation),
            "action": self.policy.action_columns,
            "weight": WEIGHT,
            **(of_value if self.value else {}),
        }

    @api
    def loss(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        action: Mapping[str, Array],
        weight: Array,
        return_: Array | None = None,
        value_coefficient: Array | float = 0.0,
    ) -> LossResult:
        """Shapes: all columns [B] (observations and actions [B, ...])."""
        ops = scope.ops
        share = weight / ops.sum(weight)
        now = self.policy.evaluate(scope, observation=observation, action=action)
        total, rows = -now.log_prob, [-now.log_prob, now.entropy]
        if return_ is not None:
            error = now.value - return_
            squared = error * error
            total = total + value_coefficient * squared
            rows.append(squared)
        return LossResult(loss=ops.dot(total, share), metrics=ops.dot(ops.stop_gradient(ops.stack(rows)), share), rows={})
